package probers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// Set has a worker for each probe of each running container, including sidecars.
type Set struct {
	began  time.Time
	random func() float64
	pods   map[types.UID]*pod
	// running holds the running probes. A run may outlive its worker.
	running map[key]bool
	// queue holds the waiting probes, ordered by the time when they are due. It is valid unless stale is set.
	queue []turn
	stale bool
}

// turn is a probe in the queue.
type turn struct {
	pod    model.PodRef
	in     *container
	probe  model.ProbeType
	worker *worker
}

// before orders turns by the time when they are due, and then by name.
func (t *turn) before(other *turn) int {
	return cmp.Or(t.worker.due.Compare(other.worker.due), t.pod.Compare(other.pod),
		cmp.Compare(t.in.spec.Name, other.in.spec.Name), cmp.Compare(t.probe, other.probe))
}

// key names a probe of one run of a container.
type key struct {
	container string
	probe     model.ProbeType
}

type pod struct {
	ref        model.PodRef
	containers map[string]*container
}

type container struct {
	spec      *v1.Container
	id        string
	address   string
	startedAt time.Time
	workers   map[model.ProbeType]*worker
}

// New returns a Set. began is when the agent started: containers that ran before are probed at random times within one
// period. random returns numbers in [0, 1).
func New(began time.Time, random func() float64) *Set {
	return &Set{began: began, random: random, pods: map[types.UID]*pod{}, running: map[key]bool{}}
}

// Began returns when the agent started. It has run the probes of its pods without a break since then.
func (s *Set) Began() time.Time { return s.began }

// Running is a container that a pass has observed running.
type Running struct {
	Name string
	ID   string
	// Address is the address of the container's sandbox.
	Address   string
	StartedAt time.Time
	// Records are the checkpoint's records for this ID.
	Records map[model.ProbeType]model.ProbeRecord
}

// Observation is a pod as a pass has observed it.
type Observation struct {
	Desired *podspec.Desired
	// Running has at most one container for each name.
	Running []Running
	// Deleting reports whether the pod is being deleted. Then liveness and startup probes end, and readiness continues
	// (kubelet: doProbe).
	Deleting bool
}

// types returns the types of probes that run.
func (seen *Observation) types() []model.ProbeType {
	if seen.Deleting {
		return []model.ProbeType{model.Readiness}
	}
	return model.ProbeTypes()
}

// Sync updates the probes of a pod. A container with another ID starts from the beginning. Probes that changed in the
// manifest are updated, and those of ended containers are dropped. Sync returns the verdicts that the checkpoint lacks
// because they could not be written.
func (s *Set) Sync(now time.Time, seen Observation) []probe.Report {
	s.stale = true
	p := &pod{ref: model.RefOf(seen.Desired.Pod), containers: map[string]*container{}}
	for i := range seen.Running {
		r := &seen.Running[i]
		ref, ok := podspec.FindContainer(seen.Desired.Pod, r.Name)
		if !ok {
			continue
		}
		c := &container{
			spec:      ref.Container,
			id:        r.ID,
			address:   r.Address,
			startedAt: r.StartedAt,
			workers:   map[model.ProbeType]*worker{},
		}
		old := s.find(p.ref.UID, r.Name)
		for _, t := range seen.types() {
			if model.ProbeOf(c.spec, t) != nil {
				c.workers[t] = s.worker(now, old, c, t)
				c.workers[t].update(now, c, t, r.Records)
			}
		}
		if len(c.workers) > 0 {
			p.containers[r.Name] = c
		}
	}
	if s.pods[p.ref.UID] = p; len(p.containers) == 0 {
		s.Forget(p.ref.UID)
	}
	return p.unrecorded()
}

// worker returns the existing worker for a probe of the same container, or a new one.
func (s *Set) worker(now time.Time, old, c *container, t model.ProbeType) *worker {
	if old != nil && old.id == c.id && old.workers[t] != nil {
		return old.workers[t]
	}
	w := &worker{probe: model.ProbeOf(c.spec, t), record: model.InitialProbe(t), since: c.startedAt}
	w.due = now.Add(max(w.wait(now, c), s.spread(now, c, w.probe)))
	return w
}

// unrecorded returns the verdicts that the checkpoint of the pod lacks.
func (p *pod) unrecorded() []probe.Report {
	var unkept []probe.Report
	for _, name := range slices.Sorted(maps.Keys(p.containers)) {
		c := p.containers[name]
		for _, t := range model.ProbeTypes() {
			if w := c.workers[t]; w != nil && w.isUnrecorded() {
				r := w.report(p.ref, c, t)
				r.Changed = true
				unkept = append(unkept, r)
			}
		}
	}
	return unkept
}

// spread returns a random part of the period for a container that ran before the agent, so that not all probes run at
// once (kubelet: worker.run).
func (s *Set) spread(now time.Time, c *container, p *v1.Probe) time.Duration {
	period := periodOf(p)
	if !c.startedAt.Before(s.began) || now.Sub(s.began) >= period {
		return 0
	}
	return time.Duration(s.random() * float64(period))
}

// Forget drops a pod that is gone or has finished.
func (s *Set) Forget(uid types.UID) {
	delete(s.pods, uid)
	s.stale = true
}

// DueProbe is one probe to run now. The caller must pass its result to Done.
type DueProbe struct {
	Pod    model.PodRef
	Type   model.ProbeType
	Probe  *v1.Probe
	Target probe.Target
	// At is when the run started.
	At time.Time
}

func (a *DueProbe) key() key { return key{a.Target.ContainerID, a.Type} }

// Next returns the probes that are due, and when to call it again. A zero time means not before a call of another
// method.
func (s *Set) Next(now time.Time) (run []DueProbe, wake time.Time) {
	if s.stale {
		s.rebuildQueue()
	}
	due := 0
	for ; due < len(s.queue) && !s.queue[due].worker.due.After(now); due++ {
		t := &s.queue[due]
		t.worker.lastRun, t.worker.superseded = now, false
		s.running[key{t.in.id, t.probe}] = true
		target := probe.Target{ContainerID: t.in.id, Container: t.in.spec, PodIP: t.in.address}
		run = append(run, DueProbe{Pod: t.pod, Type: t.probe, Probe: t.worker.probe, Target: target, At: now})
	}
	s.queue = slices.Delete(s.queue, 0, due)
	if len(s.queue) > 0 {
		wake = s.queue[0].worker.due
	}
	return run, wake
}

// rebuildQueue rebuilds the queue.
func (s *Set) rebuildQueue() {
	s.queue = slices.DeleteFunc(s.appendTurns(s.queue[:0]), func(t turn) bool { return !s.mayRun(t.in, t.probe) })
	s.stale = false
	slices.SortStableFunc(s.queue, func(a, b turn) int { return a.before(&b) })
}

// appendTurns appends all probes to a list, in any order.
func (s *Set) appendTurns(list []turn) []turn {
	for _, p := range s.pods {
		for _, c := range p.containers {
			for t, w := range c.workers {
				list = append(list, turn{p.ref, c, t, w})
			}
		}
	}
	return list
}

// enqueue adds a probe that has answered and will run again to the queue.
func (s *Set) enqueue(t turn) {
	at, _ := slices.BinarySearchFunc(s.queue, t, func(a, b turn) int { return a.before(&b) })
	s.queue = slices.Insert(s.queue, at, t)
}

// mayRun reports whether a probe runs when it is due: it is not decided, it is not running, and its startup probe has
// passed (kubelet: doProbe).
func (s *Set) mayRun(c *container, t model.ProbeType) bool {
	startup := c.workers[model.Startup]
	waits := t != model.Startup && startup != nil && startup.record.Result != model.ProbeSuccess
	return !waits && !c.workers[t].record.OnHold && !s.running[key{c.id, t}]
}

// Done processes a result, and returns what to record (probe.Prober.Keep). It ignores the result if the container has
// ended, if the probe has changed, or if the probe started before a newer result of another process.
func (s *Set) Done(now time.Time, run DueProbe, result probe.Result) probe.Report {
	delete(s.running, run.key())
	stale := s.stale
	s.stale = true
	c := s.find(run.Pod.UID, run.Target.Container.Name)
	if c == nil || c.id != run.Target.ContainerID {
		return probe.Report{}
	}
	w := c.workers[run.Type]
	if w == nil || !w.accepts(run) {
		return probe.Report{}
	}
	w.due = next(run.At, now, periodOf(w.probe))
	r := w.report(run.Pod, c, run.Type)
	r.Result = result
	changed := w.fold(now, &r)
	if !changed && !stale {
		// Only the due time of this probe has changed.
		s.stale = false
		if s.mayRun(c, run.Type) {
			s.enqueue(turn{run.Pod, c, run.Type, w})
		}
	}
	r.Changed, r.IsEvent = w.isUnrecorded(), w.isEvent(now, result)
	if r.Changed {
		w.recorded, w.hasRecord = w.record, true
	}
	r.NeedsPass = changed || r.Changed
	return r
}

// MakeDue makes the readiness probe of a container due, because a pass found it not ready (kubelet: UpdatePodStatus).
// The period starts again from now. A running probe is recent enough: the next run is a period after it. The initial
// delay still applies.
func (s *Set) MakeDue(now time.Time, uid types.UID, name string) {
	c := s.find(uid, name)
	if c == nil || c.workers[model.Readiness] == nil {
		return
	}
	w := c.workers[model.Readiness]
	s.stale = true
	w.due = now.Add(delay(now, c.startedAt, w.probe))
}

func (s *Set) find(uid types.UID, name string) *container {
	if p := s.pods[uid]; p != nil {
		return p.containers[name]
	}
	return nil
}
