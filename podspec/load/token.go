package load

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// tokenPrefix is the prefix of the volume that a cluster's service account admission adds to every pod.
const tokenPrefix = "kube-api-access-"

// isInjectedToken reports whether admission added a volume. The name alone is not enough, because a user may choose
// such a name.
func isInjectedToken(vol *v1.Volume) bool {
	isToken := func(s v1.VolumeProjection) bool { return s.ServiceAccountToken != nil }
	return strings.HasPrefix(vol.Name, tokenPrefix) && vol.Projected != nil &&
		slices.ContainsFunc(vol.Projected.Sources, isToken)
}

// injectedTokens returns the names of the volumes that admission added. It omits a name that another volume also has,
// because the mounts could belong to either.
func injectedTokens(volumes []v1.Volume) map[string]bool {
	tokens := map[string]bool{}
	for i := range volumes {
		if isInjectedToken(&volumes[i]) {
			tokens[volumes[i].Name] = true
		}
	}
	for i := range volumes {
		if !isInjectedToken(&volumes[i]) {
			delete(tokens, volumes[i].Name)
		}
	}
	return tokens
}

// dropInjectedToken removes the service account token that a cluster mounts into every pod. podctl cannot issue tokens,
// so a pod exported from a cluster could otherwise not be loaded.
func dropInjectedToken(o *object) []document.Note {
	o.tokens = injectedTokens(o.pod.Spec.Volumes)
	var notes []document.Note
	kept := o.pod.Spec.Volumes[:0]
	for i := range o.pod.Spec.Volumes {
		vol := o.pod.Spec.Volumes[i]
		if !o.tokens[vol.Name] {
			kept = append(kept, vol)
			continue
		}
		path := fieldpath.Index("spec.volumes", i)
		notes = append(notes, o.report.Note(o.key(), path,
			"the service account token that the cluster injected is left out, with its mounts"))
	}
	o.pod.Spec.Volumes = kept
	for _, ref := range podspec.Containers(o.pod) {
		ref.VolumeMounts = slices.DeleteFunc(ref.VolumeMounts, func(m v1.VolumeMount) bool { return o.tokens[m.Name] })
	}
	return notes
}
