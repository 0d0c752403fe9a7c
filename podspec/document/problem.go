package document

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/podspec/quote"
)

// Class is the kind of a problem.
type Class string

// Classes of problems.
const (
	// ClassInvalid is a manifest that the API server would refuse.
	ClassInvalid Class = "invalid"
	// ClassUnsupported is valid, but podctl cannot do it.
	ClassUnsupported Class = "unsupported"
	// ClassUnresolved is a reference to a ConfigMap, Secret or claim that no document has. It blocks the containers
	// that need it; the manifest is accepted.
	ClassUnresolved Class = "unresolved"
)

// Problem is a fault of a manifest and its position.
type Problem struct {
	Class Class `json:"class"`
	// File is the path, URL or "-" of the document.
	File string `json:"file"`
	// Line and Column count from 1; 0 means unknown.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path is the field, for example spec.containers[0].image, or empty for the whole document.
	Path   string `json:"path"`
	Detail string `json:"detail"`
	// Duplicate is set if the object has the name or uid of an earlier one and is left out. The other objects are used.
	Duplicate bool `json:"-"`
	// First is the uid of the pod that already uses the name or uid of a Duplicate. For a workload it is the uid of its
	// first pod. It is empty for other objects.
	First string `json:"-"`
	// Limit is set if the sources together exceed a limit, so the rest was not read.
	Limit bool `json:"-"`
}

// String returns the problem in the form of compilers: file:line:column: path: detail.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(place(p.File, p.Line, p.Column))
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Detail)
	// A key of the manifest may look like a message of podctl.
	return quote.OneLine(b.String())
}

// first returns the first problems and a note with the number of the others.
func first(problems []Problem) []Problem {
	left := len(problems) - MaxProblems
	if left <= 0 {
		return problems
	}
	rest := problems[MaxProblems]
	rest.Path, rest.Detail = "", AndMore(left)
	return append(problems[:MaxProblems:MaxProblems], rest)
}

// AndMore returns the text for n problems that are not listed.
func AndMore(n int) string { return fmt.Sprintf("and %s more", Counted(n, "problem")) }

func place(file string, line, column int) string {
	if line == 0 {
		return file + ": "
	}
	return fmt.Sprintf("%s:%d:%d: ", file, line, column)
}

// Note is a field that is accepted but has no effect, or a document that is not used.
type Note struct {
	// Pod is namespace/name; empty for a note about no pod.
	Pod    string `json:"pod,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// String returns the note in the form of a problem.
func (n Note) String() string {
	return Problem{File: n.File, Line: n.Line, Column: n.Column, Path: n.Path, Detail: n.Detail}.String()
}

// GroupNotes returns the texts of notes, ordered by the first note of each. Equal notes for the same field at several
// places become one text.
func GroupNotes(notes []Note) []string {
	type what struct{ path, detail string }
	first, places := map[what]int{}, [][]Note{}
	for _, n := range notes {
		key := what{n.Path, n.Detail}
		at, known := first[key]
		if !known {
			at = len(places)
			first[key], places = at, append(places, nil)
		}
		places[at] = append(places[at], n)
	}
	texts := make([]string, 0, len(places))
	for _, of := range places {
		text := of[0].String()
		if len(of) > 1 {
			text += fmt.Sprintf(" (also at %s)", otherPlaces(of[1:]))
		}
		texts = append(texts, text)
	}
	return texts
}

// maxPlaces limits the listed places of a repeated note.
const maxPlaces = 3

func otherPlaces(notes []Note) string {
	var places []string
	for _, n := range notes[:min(len(notes), maxPlaces)] {
		places = append(places, fmt.Sprintf("%s:%d", n.File, n.Line))
	}
	text := strings.Join(places, ", ")
	if more := len(notes) - maxPlaces; more > 0 {
		text += fmt.Sprintf(" and %d more places", more)
	}
	return text
}

// Skipped is an object of a manifest that podctl does not use.
type Skipped struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty if the manifest has none. podctl does not know which kinds have namespaces.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	Reason    string `json:"reason"`
}

// String names the object and the reason.
func (s Skipped) String() string {
	text := "skipped: " + s.Kind + "/" + s.Name
	if s.Namespace != "" {
		text += " in namespace " + s.Namespace
	}
	return quote.OneLine(text + " (" + s.Reason + ")")
}

// IsSame reports whether both are the same object.
func (s Skipped) IsSame(other Skipped) bool {
	return s.APIVersion == other.APIVersion && s.Kind == other.Kind &&
		s.Namespace == other.Namespace && s.Name == other.Name
}

// Counted returns a number with its noun, in the plural if necessary.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
