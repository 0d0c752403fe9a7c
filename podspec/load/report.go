package load

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// report collects the problems of one document. It keeps the first hundred and counts the
// rest: finding the place of each costs a way through the document.
type report struct {
	*document.Document
	kept    []document.Problem
	omitted int
	// undecoded are the paths that could not be decoded, as pathKey writes them, and partial
	// the fields that they were part of. A problem found there later only follows from the
	// absence of the value.
	undecoded, partial map[string]bool
	// unnamed is set when a name that other fields refer to may be among them.
	unnamed bool
}

// refuse adds a problem at a field path.
func (r *report) refuse(class document.Class, path, detail string) {
	if r.accepts(path) {
		r.kept = append(r.kept, r.At(class, path, detail))
	}
}

// add adds problems whose places are known.
func (r *report) add(problems []document.Problem) {
	for _, p := range problems {
		if r.accepts(r.relative(p.Path)) {
			r.kept = append(r.kept, p)
		}
	}
}

// accepts reports whether a problem at a path is kept: it does not follow from a value that
// could not be decoded, and there are not too many.
func (r *report) accepts(path string) bool {
	if r.isUndecoded(path) {
		return false
	}
	if len(r.kept) >= document.MaxProblems {
		r.omitted++
		return false
	}
	return true
}

// refuseValue adds the problem of a value that cannot be decoded. No other problem of that
// value is added.
func (r *report) refuseValue(path, detail string) {
	if r.accepts(path) {
		r.kept = append(r.kept, r.AtValue(document.ClassInvalid, path, detail))
	}
	r.ignore(fieldpath.Split(path))
}

// ignore keeps problems at a path, and below it, out of the report.
func (r *report) ignore(parts []string) {
	if r.undecoded == nil {
		r.undecoded, r.partial = map[string]bool{}, map[string]bool{}
	}
	r.undecoded[pathKey(parts)] = true
	if len(parts) > 2 {
		r.partial[pathKey(parts[:len(parts)-1])] = true
	}
	r.unnamed = r.unnamed || namesOthers(parts)
}

// pathKey is a path in one form, however its keys are written.
func pathKey(parts []string) string { return strings.Join(parts, "\x00") }

// isUndecoded reports whether a path is, or lies below, one that could not be decoded.
func (r *report) isUndecoded(path string) bool {
	if len(r.undecoded) == 0 {
		return false
	}
	parts := fieldpath.Split(path)
	for i := range len(parts) + 1 {
		if r.undecoded[pathKey(parts[:i])] {
			return true
		}
	}
	return false
}

// follows reports whether a problem only follows from a value that could not be decoded: a
// probe without a handler, the mount of a volume that is not there.
func (r *report) follows(err *field.Error) bool {
	return r.partial[pathKey(fieldpath.Split(err.Field))] || (r.unnamed && err.Type == field.ErrorTypeNotFound)
}

// namesOthers reports whether a path holds names that other fields refer to: those of
// volumes and containers.
func namesOthers(path []string) bool {
	switch {
	case len(path) < 2:
		return true
	case !slices.Contains([]string{"volumes", "containers", "initContainers"}, path[1]):
		return false
	}
	return len(path) < 4 || path[3] == "name"
}

// hasProblem reports whether there is a problem of a field already.
func (r *report) hasProblem(path string) bool {
	full := r.Full(path)
	return slices.ContainsFunc(r.kept, func(p document.Problem) bool { return p.Path == full })
}

// relative is a path of the whole document as one of the object that the report is on.
func (r *report) relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, r.Full("")), ".")
}

// part is the report on the object at a field, which is decoded with the whole document.
func (r *report) part(path string, json []byte) *report {
	p := &report{Document: r.Part(path, json), unnamed: r.unnamed}
	below := pathKey(fieldpath.Split(path)) + "\x00"
	for key := range r.undecoded {
		if rest, ok := strings.CutPrefix(key, below); ok {
			p.ignore(strings.Split(rest, "\x00"))
		}
	}
	return p
}

// clone is a report of its own, to which problems can be added.
func (r *report) clone() *report {
	c := *r
	c.kept = slices.Clone(r.kept)
	return &c
}

// problems are the problems in the order of their lines, with how many there are besides.
func (r *report) problems() []document.Problem {
	slices.SortStableFunc(r.kept, byPlace)
	if r.omitted == 0 {
		return r.kept
	}
	rest := r.kept[len(r.kept)-1]
	rest.Class, rest.Path, rest.Detail = document.ClassInvalid, "", document.AndMore(r.omitted)
	return append(r.kept, rest)
}

func byPlace(a, b document.Problem) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
