package podworkers

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestPullsDoNotBlockOtherPasses checks that a pass that waits for an image leaves its slot to another, and continues
// when a slot is free.
func TestPullsDoNotBlockOtherPasses(t *testing.T) {
	w := New(Settings{Parallel: 1, Jitter: func() float64 { return 0 }})
	goOn := func(want ...types.UID) {
		t.Helper()
		if got := w.Continue(); !slices.Equal(got, want) {
			t.Errorf("%v go on, want %v", got, want)
		}
	}
	w.Update(at(0), pod("a", "a", "i:1"))
	w.Update(at(0), pod("b", "b", "i:1"))
	wants(t, w, 0, "sync a i:1; ")
	w.Pulling("a")
	goOn()
	wants(t, w, 1, "sync b i:1; ")

	w.Pulling("a")
	w.Pulled("a")
	goOn("a") // It still pulls another image, and does not count.
	w.Pulled("a")
	goOn()
	w.Done(at(2), "b", Result{})
	goOn("a")
	w.Wake(at(3), "b")
	wants(t, w, 3, "")
	w.Done(at(4), "a", Result{})
	wants(t, w, 4, "sync b i:1; wake 64.0; ")

	w.Pulling("b")
	w.Done(at(5), "b", Result{})
	w.Pulled("b") // too late: the pass was cut short
	goOn()
	w.Pulling("nobody")
	w.Pulled("nobody")
}
