package load

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// report collects the problems of one document. It keeps a limited number and counts the rest, because finding the
// position of each requires a search in the document.
type report struct {
	*document.Document
	kept    []document.Problem
	omitted int
	// undecoded holds the paths that could not be decoded, in the form of pathKey. partial holds the fields that
	// contain them. Later problems at these paths are consequences of the missing value and are not reported.
	undecoded, partial map[string]bool
	// unnamed is set if a name that other fields refer to may be undecoded.
	unnamed bool
}

// refuse adds a problem at a field path.
func (r *report) refuse(class document.Class, path, detail string) {
	if r.accepts(path) {
		r.kept = append(r.kept, r.At(class, path, detail))
	}
}

// add adds problems with known positions.
func (r *report) add(problems []document.Problem) {
	for _, p := range problems {
		if r.accepts(r.relative(p.Path)) {
			r.kept = append(r.kept, p)
		}
	}
}

// accepts reports whether a problem at a path is kept. It must not be at or below a value that could not be decoded,
// and the limit must not be reached.
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

// refuseValue adds a problem for a value that cannot be decoded. It suppresses other problems of that value.
func (r *report) refuseValue(path, detail string) {
	if r.accepts(path) {
		r.kept = append(r.kept, r.AtValue(document.ClassInvalid, path, detail))
	}
	r.ignore(fieldpath.Split(path))
}

// ignore suppresses problems at a path and below.
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

// pathKey returns one form of a path, independent of the notation of its keys.
func pathKey(parts []string) string { return strings.Join(parts, "\x00") }

// isUndecoded reports whether a path, or one of its parents, could not be decoded.
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

// follows reports whether a problem is only a consequence of a value that could not be decoded: for example, a probe
// without a handler, or the mount of an unknown volume.
func (r *report) follows(err *field.Error) bool {
	return r.partial[pathKey(fieldpath.Split(err.Field))] || (r.unnamed && err.Type == field.ErrorTypeNotFound)
}

// namesOthers reports whether a path has names that other fields refer to: those of volumes and containers.
func namesOthers(path []string) bool {
	switch {
	case len(path) < 2:
		return true
	case !slices.Contains([]string{"volumes", "containers", "initContainers"}, path[1]):
		return false
	}
	return len(path) < 4 || path[3] == "name"
}

// hasProblem reports whether a field already has a problem.
func (r *report) hasProblem(path string) bool {
	full := r.Full(path)
	return slices.ContainsFunc(r.kept, func(p document.Problem) bool { return p.Path == full })
}

// relative converts a path of the whole document to one of the report's object.
func (r *report) relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, r.Full("")), ".")
}

// part returns the report on the object at a field, which is decoded with the whole document.
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

// clone returns a copy to which problems can be added.
func (r *report) clone() *report {
	c := *r
	c.kept = slices.Clone(r.kept)
	return &c
}

// problems returns the problems in the order of their lines, and the number of omitted ones.
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
