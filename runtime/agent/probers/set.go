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

// Set has a worker for each probe of each container that runs, sidecars included.
type Set struct {
	began  time.Time
	random func() float64
	pods   map[types.UID]*pod
	// asking are the probes that have not answered yet. An answer may outlive its worker.
	asking map[key]bool
	// queue are the probes that are asked once they are due, in that order. It holds unless stale is set.
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

// before orders turns by when they are due, and those at the same moment by name.
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

// New makes a Set. Began is when the agent began: what ran before is asked at moments that are
// random within one period. Random gives numbers from 0 to below 1.
func New(began time.Time, random func() float64) *Set {
	return &Set{began: began, random: random, pods: map[types.UID]*pod{}, asking: map[key]bool{}}
}

// Began is when the agent began: since then it asks the probes of its pods without a break.
func (s *Set) Began() time.Time { return s.began }

// Running is a container that runs, as a pass has seen it.
type Running struct {
	Name string
	ID   string
	// Address is that of the container's sandbox.
	Address   string
	StartedAt time.Time
	// Records are those that the checkpoint has for this id.
	Records map[model.ProbeType]model.ProbeRecord
}

// Seen is a pod as a pass has seen it.
type Seen struct {
	Desired *podspec.Desired
	// Running has one container for each name.
	Running []Running
	// Deleting reports whether the pod is being deleted: liveness and startup probes end, and
	// readiness goes on (kubelet: doProbe).
	Deleting bool
}

// types are the probes that are asked.
func (seen *Seen) types() []model.ProbeType {
	if seen.Deleting {
		return []model.ProbeType{model.Readiness}
	}
	return model.ProbeTypes()
}

// Sync says what of a pod runs. A container with another id begins anew. Probes that changed in
// the manifest are taken over; what does not run any more is forgotten. It returns the verdicts
// that the checkpoint has not: those that could not be written.
func (s *Set) Sync(now time.Time, seen Seen) []probe.Report {
	s.stale = true
	p := &pod{ref: model.RefOf(seen.Desired.Pod), containers: map[string]*container{}}
	for i := range seen.Running {
		r := &seen.Running[i]
		ref, ok := podspec.FindContainer(seen.Desired.Pod, r.Name)
		if !ok {
			continue
		}
		c := &container{spec: ref.Container, id: r.ID, address: r.Address, startedAt: r.StartedAt, workers: map[model.ProbeType]*worker{}}
		old := s.find(p.ref.UID, r.Name)
		for _, t := range seen.types() {
			if model.ProbeOf(c.spec, t) != nil {
				c.workers[t] = s.worker(now, old, c, t)
				c.workers[t].take(now, c, t, r.Records)
			}
		}
		if len(c.workers) > 0 {
			p.containers[r.Name] = c
		}
	}
	if s.pods[p.ref.UID] = p; len(p.containers) == 0 {
		s.Forget(p.ref.UID)
	}
	return p.unkept()
}

// worker is that of a probe of the same container as before, or a new one.
func (s *Set) worker(now time.Time, old, c *container, t model.ProbeType) *worker {
	if old != nil && old.id == c.id && old.workers[t] != nil {
		return old.workers[t]
	}
	w := &worker{probe: model.ProbeOf(c.spec, t), record: model.InitialProbe(t), since: c.startedAt}
	w.due = now.Add(max(w.wait(now, c), s.spread(now, c, w.probe)))
	return w
}

// unkept are the verdicts that the checkpoint of the pod has not.
func (p *pod) unkept() []probe.Report {
	var unkept []probe.Report
	for _, name := range slices.Sorted(maps.Keys(p.containers)) {
		c := p.containers[name]
		for _, t := range model.ProbeTypes() {
			if w := c.workers[t]; w != nil && w.unkept() {
				r := w.report(p.ref, c, t)
				r.Changed = true
				unkept = append(unkept, r)
			}
		}
	}
	return unkept
}

// spread is a random part of the period for a container that ran before the agent, so that not all
// are asked at once (kubelet: worker.run).
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

// Ask is one probe to ask now. Each is answered by a call of Done.
type Ask struct {
	Pod    model.PodRef
	Type   model.ProbeType
	Probe  *v1.Probe
	Target probe.Target
	// At is when it began.
	At time.Time
}

func (a *Ask) key() key { return key{a.Target.ContainerID, a.Type} }

// Next begins the probes that are due, and says when to call it again: zero means not before a
// call of another method.
func (s *Set) Next(now time.Time) (ask []Ask, wake time.Time) {
	if s.stale {
		s.order()
	}
	due := 0
	for ; due < len(s.queue) && !s.queue[due].worker.due.After(now); due++ {
		t := &s.queue[due]
		t.worker.asked, t.worker.overtaken = now, false
		s.asking[key{t.in.id, t.probe}] = true
		target := probe.Target{ContainerID: t.in.id, Container: t.in.spec, PodIP: t.in.address}
		ask = append(ask, Ask{Pod: t.pod, Type: t.probe, Probe: t.worker.probe, Target: target, At: now})
	}
	s.queue = slices.Delete(s.queue, 0, due)
	if len(s.queue) > 0 {
		wake = s.queue[0].worker.due
	}
	return ask, wake
}

// order makes the queue anew.
func (s *Set) order() {
	s.queue, s.stale = s.queue[:0], false
	for _, p := range s.pods {
		for _, c := range p.containers {
			for t, w := range c.workers {
				if s.asks(c, t) {
					s.queue = append(s.queue, turn{p.ref, c, t, w})
				}
			}
		}
	}
	slices.SortFunc(s.queue, func(a, b turn) int { return a.before(&b) })
}

// enqueue puts a probe into the queue that has answered, and is asked again.
func (s *Set) enqueue(t turn) {
	at, _ := slices.BinarySearchFunc(s.queue, t, func(a, b turn) int { return a.before(&b) })
	s.queue = slices.Insert(s.queue, at, t)
}

// asks reports whether a probe is asked once it is due: it is not decided, has answered, and the
// startup probe has passed that the others wait for (kubelet: doProbe).
func (s *Set) asks(c *container, t model.ProbeType) bool {
	startup := c.workers[model.Startup]
	waits := t != model.Startup && startup != nil && startup.record.Result != model.ProbeSuccess
	return !waits && !c.workers[t].record.OnHold && !s.asking[key{c.id, t}]
}

// Done takes an answer, and returns what is to be written down (probe.Prober.Keep). That of a container that does not run any more, of a probe that has
// changed since, or from before an answer that another process got, counts for nothing.
func (s *Set) Done(now time.Time, ask Ask, result probe.Result) probe.Report {
	delete(s.asking, ask.key())
	stale := s.stale
	s.stale = true
	c := s.find(ask.Pod.UID, ask.Target.Container.Name)
	if c == nil || c.id != ask.Target.ContainerID {
		return probe.Report{}
	}
	w := c.workers[ask.Type]
	if w == nil || !w.waitsFor(ask) {
		return probe.Report{}
	}
	w.due = next(ask.At, now, periodOf(w.probe))
	r := w.report(ask.Pod, c, ask.Type)
	r.Result = result
	changed := w.fold(now, &r)
	if !changed && !stale {
		// Nothing has changed but when this one is due.
		s.stale = false
		if s.asks(c, ask.Type) {
			s.enqueue(turn{ask.Pod, c, ask.Type, w})
		}
	}
	r.Changed, r.Told = w.unkept(), w.tells(now, result)
	if r.Changed {
		w.kept, w.known = w.record, true
	}
	r.Look = changed || r.Changed
	return r
}

// AskNow makes the readiness probe of a container due that a pass found not ready (kubelet:
// UpdatePodStatus). It goes on with its period from then on. An answer that is under way is new
// enough: the next is asked a period after it. The initial delay stays.
func (s *Set) AskNow(now time.Time, uid types.UID, name string) {
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
