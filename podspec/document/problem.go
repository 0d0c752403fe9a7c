package document

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/podspec/quote"
)

// Class says what kind of fault a manifest has.
type Class string

// The classes of fault.
const (
	// ClassInvalid is what the API server would refuse.
	ClassInvalid Class = "invalid"
	// ClassUnsupported is valid, but cannot be done here.
	ClassUnsupported Class = "unsupported"
	// ClassUnresolved names a ConfigMap, Secret or claim that no document
	// supplies. It blocks the containers that need it and refuses nothing.
	ClassUnresolved Class = "unresolved"
)

// Problem is one fault of a manifest and the place where it is.
type Problem struct {
	Class Class `json:"class"`
	// File is the path, URL or "-" the document came from.
	File string `json:"file"`
	// Line and Column count from 1; 0 means that the place is not known.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path is the field, for example spec.containers[0].image; empty for the
	// document as a whole.
	Path   string `json:"path"`
	Detail string `json:"detail"`
	// Duplicate is set when the object has the name or the uid of one before it, and is left out:
	// everything else is as if it were not there.
	Duplicate bool `json:"-"`
	// First is the uid of the pod that has what a Duplicate asks for, or of the first pod of a workload that has it; empty for other
	// objects.
	First string `json:"-"`
	// Limit is set when the texts together are more than is read: nothing is known of the rest.
	Limit bool `json:"-"`
}

// String writes a problem as compilers do: file:line:column: path: detail.
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

// first are the first of many problems, and how many more there are.
func first(problems []Problem) []Problem {
	left := len(problems) - MaxProblems
	if left <= 0 {
		return problems
	}
	rest := problems[MaxProblems]
	rest.Path, rest.Detail = "", AndMore(left)
	return append(problems[:MaxProblems:MaxProblems], rest)
}

// AndMore says how many problems are not listed.
func AndMore(n int) string { return fmt.Sprintf("and %s more", Counted(n, "problem")) }

func place(file string, line, column int) string {
	if line == 0 {
		return file + ": "
	}
	return fmt.Sprintf("%s:%d:%d: ", file, line, column)
}

// Note is a field that is accepted and has no effect here, or a document that is
// not used.
type Note struct {
	// Pod is namespace/name; empty when the note is about no pod.
	Pod    string `json:"pod,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// String writes a note as a problem is written.
func (n Note) String() string {
	return Problem{File: n.File, Line: n.Line, Column: n.Column, Path: n.Path, Detail: n.Detail}.String()
}

// GroupNotes are the texts of notes, in the order of the first of each. Notes that say the same of a field at several places are one
// text.
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

// maxPlaces is how many places of a repeated note are listed.
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

// Skipped is an object of a manifest that podctl has no use for.
type Skipped struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty if the manifest names none: podctl does not know which kinds have namespaces.
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

// IsSame reports whether two documents have the same object.
func (s Skipped) IsSame(other Skipped) bool {
	return s.APIVersion == other.APIVersion && s.Kind == other.Kind && s.Namespace == other.Namespace && s.Name == other.Name
}

// Counted is a number of things with their noun, in the plural where it has to be.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
