package load

import (
	"fmt"
	"slices"
	"strings"
)

// hookAnnotation says when helm would apply an object: beside an installation, or at another time.
const hookAnnotation = "helm.sh/hook"

// isLaterHook reports whether helm would apply an object at another time than with the others, as a test or before a deletion,
// and notes it. What runs before or after an installation is applied with everything else.
func (a *assembly) isLaterHook(r *report) bool {
	hook := r.Scalar("metadata", "annotations", hookAnnotation)
	if hook == "" || !a.workloads {
		return false
	}
	at := "metadata.annotations[" + hookAnnotation + "]"
	for word := range strings.SplitSeq(hook, ",") {
		if slices.Contains([]string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "crd-install"}, strings.TrimSpace(word)) {
			a.notes = append(a.notes, r.Note("", at, "A hook of helm is applied with everything else, in no order."))
			return false
		}
	}
	name := r.Scalar("metadata", "namespace")
	if name == "" {
		name = a.namespace
	}
	a.notes = append(a.notes, r.Note("", at, fmt.Sprintf("%s %s/%s is left out: helm applies it at another time than the rest of its chart.", r.Kind, name, r.Scalar("metadata", "name"))))
	return true
}
