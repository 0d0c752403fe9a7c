package document

import (
	"slices"
	"testing"
)

// TestGroupNotes checks that equal notes at several places become one text, and that other notes keep their order.
func TestGroupNotes(t *testing.T) {
	note := func(line int, path, detail string) Note {
		return Note{File: "a.yaml", Line: line, Column: 1, Path: path, Detail: detail}
	}
	got := GroupNotes([]Note{
		note(1, "spec.x", "no effect"),
		note(2, "spec.y", "no effect"),
		note(3, "spec.x", "no effect"),
		note(4, "spec.x", "other"),
	})
	want := []string{"a.yaml:1:1: spec.x: no effect (also at a.yaml:3)", "a.yaml:2:1: spec.y: no effect", "a.yaml:4:1: spec.x: other"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	var many []Note
	for i := range 9 {
		many = append(many, note(i+1, "p", "d"))
	}
	if got = GroupNotes(many); !slices.Equal(got, []string{"a.yaml:1:1: p: d (also at a.yaml:2, a.yaml:3, a.yaml:4 and 5 more places)"}) {
		t.Errorf("%q", got)
	}
}
