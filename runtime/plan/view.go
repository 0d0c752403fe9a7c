package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// view is the input in the order in which decisions read it: sandboxes and
// containers newest first, records found by name.
type view struct {
	desired *podspec.Desired
	pod     *v1.Pod
	obs     *model.Observed
	now     time.Time
	opts    Options

	sandboxes  []model.Sandbox
	containers []*model.Container
	// active is the sandbox the pod lives in: the latest one, if it is ready.
	active string
	phase  v1.PodPhase
}

func newView(in *Input) *view {
	v := &view{desired: in.Desired, obs: &in.Observed, now: in.Now, opts: in.Options}
	if in.Desired != nil {
		v.pod = in.Desired.Pod
	}
	v.sandboxes = model.SortedSandboxes(in.Observed.Sandboxes)
	v.containers = in.Observed.NewestFirst()
	if len(v.sandboxes) > 0 && v.sandboxes[0].State == model.SandboxReady {
		v.active = v.sandboxes[0].ID
	}
	if v.pod != nil {
		v.phase = phaseOf(v)
	}
	return v
}

// newest is the latest record of that name in any sandbox; nil when there is
// none. Restart policy, counts and delays go by it.
func (v *view) newest(name string) *model.Container {
	return v.find(func(c *model.Container) bool { return c.Name == name })
}

// current is the latest record of that name in the active sandbox. What an init
// container has done is judged by it alone: a record of an earlier sandbox says
// nothing of this one (kubernetes#140309).
func (v *view) current(name string) *model.Container {
	if v.active == "" {
		return nil
	}
	return v.find(func(c *model.Container) bool { return c.Name == name && c.SandboxID == v.active })
}

func (v *view) find(match func(*model.Container) bool) *model.Container {
	for _, c := range v.containers {
		if match(c) {
			return c
		}
	}
	return nil
}

// newestExited is the latest record of that name that has ended, in any
// sandbox: a restart delay counts from its end.
func (v *view) newestExited(name string) *model.Container {
	return v.find(func(c *model.Container) bool { return c.Name == name && c.State == model.Exited })
}

// anyRegularRecord tells whether some regular container has a record that shows
// it was there, the unknown state not being one.
func (v *view) anyRegularRecord() bool {
	for _, ref := range podspec.RegularContainers(v.pod) {
		if c := v.newest(ref.Name); c != nil && c.State != model.Unknown {
			return true
		}
	}
	return false
}

// nextAttempt is the attempt, and the restart count, of the next start: one more
// than the newest record's, or than the highest log file's when the runtime has
// no record, and above any attempt that is taken: by a replacement that was created
// and not started, or as it turned out when it was tried.
func (v *view) nextAttempt(name string) uint32 {
	next := uint32(0)
	if c := v.newest(name); c != nil {
		next = c.RestartCount + 1
	} else if last, ok := v.obs.LogAttempts[name]; ok {
		next = last + 1
	}
	for _, c := range v.containers {
		if c.Name == name && c.State == model.Created {
			next = max(next, c.RestartCount+1)
		}
	}
	if reserved, ok := v.obs.Reserved[name]; ok {
		next = max(next, reserved+1)
	}
	return next
}

// probe is the folded verdict of one probe of one container record; false when
// it has never been asked.
func (v *view) probe(c *model.Container, t model.ProbeType) (model.ProbeRecord, bool) {
	r, ok := v.obs.Memory.Probes[c.ID][t]
	return r, ok
}

// ago says how long before now a moment was, as kubectl writes it.
func (v *view) ago(t time.Time) string {
	if t.IsZero() || t.UnixNano() == 0 || v.now.Before(t) {
		return "just now"
	}
	return duration.HumanDuration(v.now.Sub(t)) + " ago"
}
