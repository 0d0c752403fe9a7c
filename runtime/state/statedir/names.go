package statedir

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/podctl/podctl/runtime/safefs"
)

// NameError reports a name that cannot be part of a path: it is a path itself, no file name, or reserved. Files with
// such a name are never accessed.
type NameError struct {
	// Kind is the field or object with the name, as users know it: claimName, metadata.uid and so on.
	Kind string
	Name string
}

// Error names the kind and the name.
func (e *NameError) Error() string {
	return fmt.Sprintf("the %s %q cannot be used as a directory name: use another one", e.Kind, e.Name)
}

// Kinds of names that become part of a path, in the terms of users.
const (
	KindUID       = "metadata.uid"
	KindNamespace = "namespace"
	KindPod       = "metadata.name"
	KindContainer = "container name"
	KindVolume    = "volume name"
	KindPlugin    = "volume plugin"
	KindClaim     = "claimName"
	KindObject    = "name of a ConfigMap, Secret or claim"
	KindID        = "container id"
)

// CheckName refuses a name that is not a single plain element of a path. Names that begin with a dot are reserved for
// podctl and for temporary files. Unprintable characters could break lines or move the cursor where the path is shown.
//
// Loading a manifest has stricter checks. This check also covers names from stored files.
func CheckName(kind, name string) error {
	bad := safefs.CheckName(name) != nil || strings.HasPrefix(name, ".") || !isPrintable(name)
	switch kind {
	case KindUID, KindNamespace, KindPod, KindVolume, KindObject:
		// Names of logs join three names with underscores, and names of markers have a prefix with an underscore.
		// Objects have none, because no API server accepts one.
		bad = bad || strings.Contains(name, "_")
	}
	if bad {
		return &NameError{Kind: kind, Name: name}
	}
	return nil
}

// isPrintable reports whether a name is valid UTF-8 with only printable characters.
func isPrintable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// FirstError returns the first error that is not nil, because one reason is enough.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
