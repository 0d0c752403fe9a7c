package statedir

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/podctl/podctl/runtime/safefs"
)

// NameError says that a name cannot be part of a path of podctl's: it is a path itself, no
// name of a file, or one of those that podctl keeps for its own. Nothing is touched under it.
type NameError struct {
	// Kind is what has the name, as users know it: claimName, metadata.uid and so on.
	Kind string
	Name string
}

// Error names it and says what to do.
func (e *NameError) Error() string {
	return fmt.Sprintf("the %s %q cannot name a directory, and podctl touches nothing under that name: use another one", e.Kind, e.Name)
}

// What has a name that becomes a part of a path, as users know it.
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

// CheckName refuses what is not a single plain element of a path. One that begins with a
// point is podctl's own or a file that is being written. What cannot be printed would make
// several lines of one, or move a cursor, where the path is shown.
//
// Loading a manifest refuses more. This holds for what was written down before, too.
func CheckName(kind, name string) error {
	bad := safefs.CheckName(name) != nil || strings.HasPrefix(name, ".") || !isPrintable(name)
	switch kind {
	case KindUID, KindNamespace, KindPod, KindVolume, KindObject:
		// The names of logs are made of three, and those of markers have a prefix, with an
		// underscore between them. Objects have none, as no API server takes one.
		bad = bad || strings.Contains(name, "_")
	}
	if bad {
		return &NameError{Kind: kind, Name: name}
	}
	return nil
}

// isPrintable reports whether a name is valid UTF-8 without control characters, and without
// others that are not seen.
func isPrintable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// FirstError is the first of some errors that is one: each of them would say why.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
