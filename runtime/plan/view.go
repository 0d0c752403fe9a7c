package plan

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/podspec"
)

// view is the input in the order in which decisions read it: sandboxes and
// containers newest first, records found by name.
type view struct {
	desired *podspec.Desired
	pod     *v1.Pod
	obs     *Observed
	now     time.Time
	opts    Options

	sandboxes  []Sandbox
	containers []*Container
	// active is the sandbox the pod lives in: the latest one, if it is ready.
	active string
	phase  v1.PodPhase
}

func newView(in *Input) *view {
	v := &view{desired: in.Desired, obs: &in.Observed, now: in.Now, opts: in.Options}
	if in.Desired != nil {
		v.pod = in.Desired.Pod
	}
	v.sandboxes = sortedSandboxes(in.Observed.Sandboxes)
	v.containers = in.Observed.newestFirst()
	if len(v.sandboxes) > 0 && v.sandboxes[0].State == SandboxReady {
		v.active = v.sandboxes[0].ID
	}
	if v.pod != nil {
		v.phase = phaseOf(v)
	}
	return v
}

// sortedSandboxes puts the latest sandbox first: the higher attempt, then the
// later creation, then the smaller id (kubelet: podSandboxByCreated).
func sortedSandboxes(all []Sandbox) []Sandbox {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b Sandbox) int {
		return cmp.Or(
			cmp.Compare(b.Attempt, a.Attempt),
			b.CreatedAt.Compare(a.CreatedAt),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return sorted
}

// newestFirst puts containers that were created later first; those of one name in the
// order of their sandboxes and attempts, which a clock that was set back does not
// change. A record that only seems to be the latest would have its container started
// beside one that runs; so would a replacement that was created and not started when a
// pass was interrupted, which therefore comes after what it was to replace.
func (o *Observed) newestFirst() []*Container {
	sorted, byName := make([]*Container, len(o.Containers)), map[string][]*Container{}
	for i := range o.Containers {
		sorted[i] = &o.Containers[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Container) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range sorted {
		byName[c.Name] = append(byName[c.Name], c)
	}
	age, replacement := map[string]int{}, o.replacements()
	for i, s := range sortedSandboxes(o.Sandboxes) {
		age[s.ID] = i - len(o.Sandboxes)
	}
	for _, records := range byName {
		slices.SortStableFunc(records, func(a, b *Container) int {
			return cmp.Or(
				cmp.Compare(age[a.SandboxID], age[b.SandboxID]),
				cmp.Compare(replacement[a.ID], replacement[b.ID]),
				cmp.Compare(b.RestartCount, a.RestartCount),
			)
		})
	}
	for i, c := range sorted {
		sorted[i], byName[c.Name] = byName[c.Name][0], byName[c.Name][1:]
	}
	return sorted
}

// replacements has a one for each record that was created beside a container of its
// name that runs.
func (o *Observed) replacements() map[string]int {
	type place struct{ sandbox, name string }
	running, ones := map[place]bool{}, map[string]int{}
	for i := range o.Containers {
		c := &o.Containers[i]
		running[place{c.SandboxID, c.Name}] = running[place{c.SandboxID, c.Name}] || c.State == Running
	}
	for i := range o.Containers {
		if c := &o.Containers[i]; c.State == Created && running[place{c.SandboxID, c.Name}] {
			ones[c.ID] = 1
		}
	}
	return ones
}

// Newest is the latest record that matches; nil when there is none.
func (o *Observed) Newest(match func(*Container) bool) *Container {
	for _, c := range o.newestFirst() {
		if match(c) {
			return c
		}
	}
	return nil
}

// newest is the latest record of that name in any sandbox; nil when there is
// none. Restart policy, counts and delays go by it.
func (v *view) newest(name string) *Container {
	return v.find(func(c *Container) bool { return c.Name == name })
}

// current is the latest record of that name in the active sandbox. What an init
// container has done is judged by it alone: a record of an earlier sandbox says
// nothing of this one (kubernetes#140309).
func (v *view) current(name string) *Container {
	if v.active == "" {
		return nil
	}
	return v.find(func(c *Container) bool { return c.Name == name && c.SandboxID == v.active })
}

func (v *view) find(match func(*Container) bool) *Container {
	for _, c := range v.containers {
		if match(c) {
			return c
		}
	}
	return nil
}

// newestExited is the latest record of that name that has ended, in any
// sandbox: a restart delay counts from its end.
func (v *view) newestExited(name string) *Container {
	return v.find(func(c *Container) bool { return c.Name == name && c.State == Exited })
}

// anyRegularRecord tells whether some regular container has a record that shows
// it was there, the unknown state not being one.
func (v *view) anyRegularRecord() bool {
	for _, ref := range podspec.RegularContainers(v.pod) {
		if c := v.newest(ref.Name); c != nil && c.State != Unknown {
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
		if c.Name == name && c.State == Created {
			next = max(next, c.RestartCount+1)
		}
	}
	if reserved, ok := v.obs.Journal.Reserved[name]; ok {
		next = max(next, reserved+1)
	}
	return next
}

// probe is the folded verdict of one probe of one container record; false when
// it has never been asked.
func (v *view) probe(c *Container, t ProbeType) (ProbeRecord, bool) {
	r, ok := v.obs.Journal.Probes[c.ID][t]
	return r, ok
}

// ShortID is an id as people read it, and as nerdctl shows it: its first twelve digits.
func ShortID(id string) string {
	return id[:min(len(id), 12)]
}

// ago says how long before now a moment was, as kubectl writes it.
func (v *view) ago(t time.Time) string {
	if t.IsZero() || t.UnixNano() == 0 || v.now.Before(t) {
		return "just now"
	}
	return duration.HumanDuration(v.now.Sub(t)) + " ago"
}
