package podspec

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// faults are the problems found in one document. The first hundred are told and the rest
// counted: finding the place of each costs a way through the document.
type faults struct {
	told []Problem
	left int
	// aside are the paths that could not be decoded, as pathKey writes them, and bereft the
	// fields that they were part of. What is found at them later is only what was made of
	// their absence.
	aside, bereft map[string]bool
	// unnamed tells that a name which other fields refer to may be among them.
	unnamed bool
}

// refuse notes a problem at a field path.
func (d *document) refuse(class Class, path, detail string) {
	if d.counts(path) {
		d.faults.told = append(d.faults.told, d.at(class, path, detail))
	}
}

// add notes problems whose places are known.
func (d *document) add(problems []Problem) {
	for _, p := range problems {
		if d.counts(p.Path) {
			d.faults.told = append(d.faults.told, p)
		}
	}
}

// counts tells that a problem at a path is one to tell: it is not there because the value
// could not be decoded, and there are not too many.
func (d *document) counts(path string) bool {
	if d.isAside(path) {
		return false
	}
	if len(d.faults.told) >= maxProblems {
		d.faults.left++
		return false
	}
	return true
}

// setAside notes a problem of a value that cannot be decoded, and that nothing more is
// told of that value.
func (d *document) setAside(path, detail string) {
	d.refuse(ClassInvalid, path, detail)
	d.missNothing(splitPath(path))
}

// missNothing keeps quiet of what is missing at a path.
func (d *document) missNothing(parts []string) {
	f := &d.faults
	if f.aside == nil {
		f.aside, f.bereft = map[string]bool{}, map[string]bool{}
	}
	f.aside[pathKey(parts)] = true
	if len(parts) > 2 {
		f.bereft[pathKey(parts[:len(parts)-1])] = true
	}
	f.unnamed = f.unnamed || namesOthers(parts)
}

// pathKey is a path in one form, however its keys are written.
func pathKey(parts []string) string { return strings.Join(parts, "\x00") }

// isAside tells that a path lies at or below one that was set aside.
func (d *document) isAside(path string) bool {
	if len(d.faults.aside) == 0 {
		return false
	}
	parts := splitPath(path)
	for i := range len(parts) + 1 {
		if d.faults.aside[pathKey(parts[:i])] {
			return true
		}
	}
	return false
}

// follows tells that a fault is only what something that was set aside leaves behind: a
// probe without a handler, the mount of a volume that is not there.
func (d *document) follows(err *field.Error) bool {
	return d.faults.bereft[pathKey(splitPath(err.Field))] || (d.faults.unnamed && err.Type == field.ErrorTypeNotFound)
}

// namesOthers tells that a path holds names that other fields refer to: those of volumes
// and containers.
func namesOthers(path []string) bool {
	switch {
	case len(path) < 2:
		return true
	case !slices.Contains([]string{"volumes", "containers", "initContainers"}, path[1]):
		return false
	}
	return len(path) < 4 || path[3] == "name"
}

// problems are what is told of the document, with how many there are besides.
func (d *document) problems() []Problem {
	slices.SortStableFunc(d.faults.told, byPlace)
	if d.faults.left == 0 {
		return d.faults.told
	}
	rest := d.faults.told[len(d.faults.told)-1]
	rest.Class, rest.Path, rest.Detail = ClassInvalid, "", andMore(d.faults.left)
	return append(d.faults.told, rest)
}

func byPlace(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// parent is a path without its last part, which is a field's name.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }
