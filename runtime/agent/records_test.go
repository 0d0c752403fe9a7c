package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// TestCheckpointsLeave: a pod that is left alone is as one that was applied by hand, whatever its record says.
func TestCheckpointsLeave(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		c := Checkpoints{Leaves: func(d *podspec.Desired) bool { return leaves && d.Pod.Name == "web-0" }}
		for name, want := range map[string]bool{"web-0": leaves, "db-0": false} {
			one := &state.Checkpoint{}
			one.Applied = pod(name, name, "i:1", "workloads")
			s := c.storedOf(one)
			if (s.Desired.Keeper == "") != want || !s.Desired.Stored {
				t.Errorf("%s, left alone: %t: brought by %q", name, want, s.Desired.Keeper)
			}
		}
	}
}

// TestNotesAreWrittenOnce: what has no effect is told once, whichever source says it again.
func TestNotesAreWrittenOnce(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.tellNotes([]string{"one", "two"})
	l.tellNotes([]string{"two", "three"})
	for _, text := range []string{"note=one", "note=two", "note=three"} {
		if strings.Count(out.String(), text) != 1 {
			t.Errorf("%s is not there once:\n%s", text, out.String())
		}
	}
}
