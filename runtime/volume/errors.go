package volume

import "fmt"

// UnresolvedError says that a volume takes something from an object that no
// manifest supplies, and that is not optional.
type UnresolvedError struct {
	// Path is the field that refers to it.
	Path string
	// Kind and Name are the object; Key is what is missing in it, empty when the
	// object itself is missing.
	Kind, Name, Key string
}

// Error names what is missing and says what to do.
func (e *UnresolvedError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("%s: %s %q has no key %q: add it, or set optional: true", e.Path, e.Kind, e.Name, e.Key)
	}
	return fmt.Sprintf("%s: no manifest has a %s %q: add one, or set optional: true", e.Path, e.Kind, e.Name)
}

// UnsupportedError says that podctl cannot provide a volume, or a part of it.
type UnsupportedError struct {
	// Path is the field that asks for it.
	Path string
}

// Error names the field.
func (e *UnsupportedError) Error() string {
	return e.Path + ": podctl cannot provide this kind of volume"
}
