package state

import (
	"os"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestSummaries checks that a checkpoint is read again only if its file changed or was just written, and that a missing
// or damaged one is dropped.
func TestSummaries(t *testing.T) {
	l := newLayout(t)
	reads := 0
	s := NewSummaries(l, func(c *Checkpoint) string { reads++; return string(c.Pod.UID) })
	all := func(wantReads int, want ...string) {
		t.Helper()
		reads = 0
		if got, err := s.All(); err != nil || !slices.Equal(got, want) || reads != wantReads {
			t.Errorf("%v %v after %d reads, want %v after %d", got, err, reads, want, wantReads)
		}
	}
	write := func(uid types.UID) {
		t.Helper()
		c := &Checkpoint{}
		c.Pod.UID, c.Pod.Namespace, c.Pod.Name = uid, "default", string(uid)
		if err := l.Pod(uid).Checkpoint().Write(c); err != nil {
			t.Fatal(err)
		}
	}
	// readAfter sets when the files were read after they were written.
	readAfter := func(d time.Duration) {
		for uid, one := range s.kept {
			one.read = time.Unix(one.file.Ctim.Unix()).Add(d)
			s.kept[uid] = one
		}
	}
	all(0)
	write("a")
	write("b")
	readAfter(tick)
	all(2, "a", "b")
	readAfter(tick + 1)
	all(0, "a", "b")
	write("b")
	all(1, "a", "b")
	if err := os.WriteFile(l.Pod("a").Checkpoint().Path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	readAfter(tick)
	all(1, "b")
	if err := os.Remove(l.Pod("b").Checkpoint().Path()); err != nil {
		t.Fatal(err)
	}
	all(0)
}
