package runtime

import (
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
)

const day = 24 * time.Hour

// settled makes passes until one has nothing to do, and returns its plan.
func (f *faultLab) settled(text string) *plan.Plan {
	f.t.Helper()
	for range 10 {
		p, err := f.once(text)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(p.Steps) == 0 {
			return p
		}
	}
	f.t.Fatal("there is always something to do")
	return nil
}

// TestClockSetBack sets the clock back by a day and lets it catch up. Running containers continue and nothing starts
// beside them, probes run, and a crashed container is held no longer than a restart delay.
func TestClockSetBack(t *testing.T) {
	probed := strings.Replace(faultShapes()["two containers"].after, "{name: b, image: 'i:1'}",
		"{name: b, image: 'i:1', livenessProbe: {exec: {command: [x]}, initialDelaySeconds: 5, periodSeconds: 5}}", 1)
	f := newFaultLab(t, faultShape{before: probed})
	running := f.ids()
	f.clock.Advance(time.Minute)
	f.server.Exit("a", 1)
	f.clock.Advance(-day)
	if p := f.settled(probed); len(p.Holds) > 0 {
		t.Errorf("a start is held because of a time that has not come yet: %+v", p.Holds)
	}
	f.only(running, "b")
	reports, err := f.engine.Prober.Probe(t.Context(), f.load(probed), probe.Options{Due: true})
	if err != nil || len(reports) != 1 || !reports[0].Ran && reports[0].Skipped != "its period has not passed" {
		t.Errorf("a probe waits for a day: %+v %v", reports, err)
	}
	running = f.ids()
	f.server.Exit("a", 1)
	p := f.settled(probed)
	if len(p.Holds) != 1 || p.Holds[0].Until == nil || p.Holds[0].Until.Sub(f.clock.Now()) > 5*time.Minute {
		t.Errorf("a container that crashed again: %+v", p.Holds)
	}
	f.clock.Advance(5 * time.Minute)
	f.settled(probed)
	f.only(running, "b")
	running = f.ids()
	f.clock.Advance(day)
	f.settled(probed)
	f.only(running, "a", "b")
}

// ids returns the IDs of the running containers by name; two with one name are an error.
func (f *faultLab) ids() map[string]string {
	f.t.Helper()
	d := f.load(f.shape.before)
	s, err := f.engine.Observer.Observe(f.t.Context(), model.RefOf(d.Pod), d)
	if err != nil {
		f.t.Fatal(err)
	}
	ids := map[string]string{}
	o := s.Observed(s.Pod, nil)
	for i := range o.Containers {
		c := &o.Containers[i]
		if c.State == model.Running && ids[c.Name] != "" {
			f.t.Errorf("container %s runs twice", c.Name)
		}
		if c.State == model.Running {
			ids[c.Name] = c.ID
		}
	}
	return ids
}

// only checks that a and b run, and that those named are the same as before.
func (f *faultLab) only(before map[string]string, same ...string) {
	f.t.Helper()
	after := f.ids()
	if len(after) != 2 {
		f.t.Errorf("running %v, want a and b", after)
	}
	for _, name := range same {
		if after[name] != before[name] {
			f.t.Errorf("container %s was started again", name)
		}
	}
}

// TestNewestAfterTheClockWasSetBack checks that attempts decide which record is shown and which is removed: a record of
// the next attempt is newer, even if it is older by the clock.
func TestNewestAfterTheClockWasSetBack(t *testing.T) {
	text := faultShapes()["two containers"].after
	f := newFaultLab(t, faultShape{before: text})
	f.server.Exit("a", 1)
	f.clock.Advance(-day)
	f.settled(text)
	d, wanted := f.load(text), f.ids()["a"]
	newest := func() string {
		t.Helper()
		containers, err := f.engine.Observer.ListNewestFirst(t.Context(), model.RefOf(d.Pod))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(containers, func(c *runtimeapi.Container) bool { return c.GetMetadata().GetName() == "a" })
		return containers[i].GetId()
	}
	if got := newest(); got != wanted {
		t.Errorf("logs and exec are of %s, want %s", got, wanted)
	}
	usage, err := f.engine.Sessions.NewMeter().Measure(t.Context(), []*podspec.Desired{d})
	if err != nil || len(usage) != 1 || usage[0].Containers[0].ID != wanted {
		t.Errorf("top is of %+v, want %s: %v", usage, wanted, err)
	}
	f.server.Exit("a", 1)
	f.clock.Advance(time.Hour)
	f.settled(text)
	if got := newest(); got != f.ids()["a"] {
		t.Errorf("the log that follows is of %s", got)
	}
}
