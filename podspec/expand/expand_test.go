package expand

import (
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"testing"

	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// TestExpansionIsTheKubelets compares the expansion with the kubelet's, also for texts similar to references.
func TestExpansionIsTheKubelets(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)", "": "empty", "A$": "x", "(A": "y"}
	e := &Environment{values: values}
	pieces := []string{"$", "(", ")", "A", "B", "$(A)", "$$", "é", "\xff", "\uFFFD", " ", "$(C)"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		text := ""
		for range random.IntN(9) {
			text += pieces[random.IntN(len(pieces))]
		}
		want := expansion.Expand(text, expansion.MappingFuncFor(values))
		if got, err := expand(text, e.reference, len(want)); err != nil || got != want {
			t.Fatalf("%q: %q %v, want %q", text, got, err, want)
		}
		if got, err := expand(text, e.reference, len(want)-1); want != "" && (err == nil || got != "") {
			t.Fatalf("%q: %q is longer than %d", text, got, len(want)-1)
		}
	}
}

// TestExpansionBuildsNoMoreThanItsLimit expands millions of references, and millions of unclosed references. A kubelet
// searches the rest of the text for the end of each.
func TestExpansionBuildsNoMoreThanItsLimit(t *testing.T) {
	e := &Environment{values: map[string]string{"A": strings.Repeat("a", 100<<10), "E": ""}}
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"references":           {strings.Repeat("$(A)", 2<<20), false},
		"empty references":     {strings.Repeat("$(E)", 2<<20), true},
		"beginnings":           {strings.Repeat("$(", 5<<20), false},
		"dollars":              {strings.Repeat("$$", 50<<10), true},
		"dollars and a closer": {strings.Repeat("$x", 5<<20) + ")", false},
		"a long text":          {strings.Repeat("x", 10<<20), false},
	} {
		var err error
		if made := allocated(func() { _, err = expand(c.text, e.reference, maxArgument) }); made > 4<<20 {
			t.Errorf("%s: %d bytes are allocated", name, made)
		}
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// allocated returns the bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
