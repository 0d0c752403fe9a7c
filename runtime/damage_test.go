package runtime

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// TestDamagedJournals: a journal that is cut off anywhere is refused in a sentence, one
// with a bit that was flipped is refused or harmless. No container is stopped, and none
// is started.
func TestDamagedJournals(t *testing.T) {
	f := newFaultLab(t, faultShape{before: faultShapes()["two containers"].after})
	pod := f.layout.Pod(plan.RefOf(f.load(f.shape.before).Pod).UID)
	good, err := os.ReadFile(pod.JournalFile())
	if err != nil {
		t.Fatal(err)
	}
	running := f.ids()
	try := func(name string, text []byte) error {
		if err := os.WriteFile(pod.JournalFile(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.once(f.shape.before)
		unusable := (*state.JournalError)(nil)
		if err != nil && (!errors.As(err, &unusable) || !strings.Contains(err.Error(), "pod default/web") || !strings.Contains(err.Error(), "remove the file")) {
			t.Errorf("%s: %v", name, err)
		}
		if writeErr := os.WriteFile(pod.JournalFile(), good, 0o600); writeErr != nil {
			t.Fatal(writeErr)
		}
		if after := f.ids(); fmt.Sprint(after) != fmt.Sprint(running) {
			t.Fatalf("%s: running %v, before %v", name, after, running)
		}
		return err
	}
	for n := 0; n < len(good); n += 13 {
		if try(fmt.Sprintf("the first %d bytes", n), good[:n]) == nil {
			t.Errorf("%d of %d bytes are taken for a journal", n, len(good))
		}
	}
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // chance is all that is needed
	for range 150 {
		bad, at, bit := slices.Clone(good), r.IntN(len(good)), r.IntN(8)
		bad[at] ^= 1 << bit
		_ = try(fmt.Sprintf("bit %d of byte %d (%s)", bit, at, good[max(0, at-20):min(len(good), at+20)]), bad)
	}
}
