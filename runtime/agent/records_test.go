package agent

import (
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// TestIgnoredCheckpoints checks that a pod for which Ignores returns true is treated as applied by hand, whatever its
// record contains.
func TestIgnoredCheckpoints(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		c := Checkpoints{Ignores: func(d *podspec.Desired) bool { return leaves && d.Pod.Name == "web-0" }}
		for name, want := range map[string]bool{"web-0": leaves, "db-0": false} {
			one := &state.Checkpoint{}
			one.Applied = pod(name, name, "i:1", "workloads")
			s := c.storedOf(one)
			if (s.Desired.Owner == "") != want || !s.Desired.Stored {
				t.Errorf("%s, ignored %t: owner %q", name, want, s.Desired.Owner)
			}
		}
	}
}
