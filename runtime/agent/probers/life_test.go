package probers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// probeModel is the test's own model of one probe of one container.
type probeModel struct {
	result, last      model.ProbeResult
	run               int32
	hold, asking, now bool
	// lost reports whether the verdict could not be written.
	lost bool
	// ranAt is when the probe last ran, counted is when its last result counted, and within is when its current period
	// started.
	ranAt, counted, within time.Time
}

// life is a pod with random events: its containers start and end, its manifest is edited, and its probes answer after
// some time. The agent is sometimes restarted, and its writes sometimes fail.
type life struct {
	*Set
	t       *testing.T
	rand    *rand.Rand
	now     time.Time
	began   time.Time
	seen    Observation
	disk    map[string]records
	models  map[string]*probeModel
	pending []pendingAnswer
	ids     int
	runs    map[model.ProbeType]int
	log     []string
}

type pendingAnswer struct {
	ask   DueProbe
	at    time.Time
	model *probeModel
}

func newLife(t *testing.T, seed uint64) *life {
	t.Helper()
	l := &life{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: noon, disk: map[string]records{}, models: map[string]*probeModel{},
		runs: map[model.ProbeType]int{},
	}
	l.seen.Desired = podOf(v1.Container{Name: "a"}, v1.Container{Name: "b"})
	l.restart()
	return l
}

func (l *life) note(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf("%s ", l.now.Sub(noon))+fmt.Sprintf(format, args...))
}

func (l *life) fail(format string, args ...any) {
	l.t.Helper()
	for _, line := range l.log[max(0, len(l.log)-40):] {
		l.t.Log(line)
	}
	l.t.Fatalf("%s: %s", l.now.Sub(noon), fmt.Sprintf(format, args...))
}

// restart starts a new agent that has only the checkpoint.
func (l *life) restart() {
	l.note("agent")
	l.Set, l.began, l.pending = New(l.now, l.rand.Float64), l.now, nil
	before := l.models
	l.models = map[string]*probeModel{}
	l.sync()
	for name, k := range l.models {
		if old := before[name]; old != nil && !old.lost && (old.result != k.result || old.hold && !k.hold && old.result == good) {
			l.fail("%s was %+v and is %+v after a restart", name, old, k)
		}
	}
}

func (l *life) edit() {
	pod := l.seen.Desired.Pod.DeepCopy()
	some := func(kind model.ProbeType) *v1.Probe {
		if l.rand.IntN(4) == 0 {
			return nil
		}
		p := &v1.Probe{
			PeriodSeconds:       1 + l.rand.Int32N(9),
			InitialDelaySeconds: l.rand.Int32N(9),
			SuccessThreshold:    1,
			FailureThreshold:    2 + l.rand.Int32N(3),
		}
		if kind == model.Readiness {
			p.SuccessThreshold += l.rand.Int32N(3)
		}
		return p
	}
	c := &pod.Spec.Containers[l.rand.IntN(2)]
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = some(model.Liveness), some(model.Readiness), some(model.Startup)
	l.note("edit of %s: %v %v %v", c.Name, c.LivenessProbe, c.ReadinessProbe, c.StartupProbe)
	// Late results of an edited probe are not tested here: the edited container is restarted.
	for i, r := range l.seen.Running {
		if r.Name == c.Name {
			l.seen.Running[i] = l.run(c.Name)
		}
	}
	if l.rand.IntN(2) == 0 && c.ReadinessProbe != nil {
		c.ReadinessProbe.PeriodSeconds++
	}
	l.seen.Desired = &podspec.Desired{Pod: pod}
	l.sync()
}

// slower changes the period of running probes.
func (l *life) slower() {
	pod := l.seen.Desired.Pod.DeepCopy()
	c := &pod.Spec.Containers[l.rand.IntN(2)]
	for _, kind := range model.ProbeTypes() {
		if p := model.ProbeOf(c, kind); p != nil {
			p.PeriodSeconds = 1 + l.rand.Int32N(9)
			for _, r := range l.seen.Running {
				if k := l.models[r.ID+string(kind)]; r.Name == c.Name && k != nil {
					k.within = l.now
				}
			}
		}
	}
	l.note("other periods of %s", c.Name)
	l.seen.Desired = &podspec.Desired{Pod: pod}
	l.sync()
}

func (l *life) run(name string) Running {
	l.ids++
	return Running{Name: name, ID: fmt.Sprint("id", l.ids), StartedAt: l.now}
}

// turn starts, ends or replaces a container.
func (l *life) turn() {
	name := []string{"a", "b"}[l.rand.IntN(2)]
	var others []Running
	for _, r := range l.seen.Running {
		if r.Name != name {
			others = append(others, r)
		}
	}
	l.seen.Running = others
	if l.rand.IntN(4) > 0 {
		l.seen.Running = append(l.seen.Running, l.run(name))
	}
	l.note("runs %v", l.seen.Running)
	l.sync()
}

// sync is a pass that has observed the pod. Verdicts that are not on disk are written now.
func (l *life) sync() {
	before := map[string]records{}
	for i, r := range l.seen.Running {
		before[r.ID] = maps.Clone(l.disk[r.ID])
		l.seen.Running[i].Records = before[r.ID]
	}
	for _, a := range l.Sync(l.now, l.seen) {
		l.note("writes late %s %s %+v", a.ContainerID, a.Type, a.Record)
		l.write(a)
		if k := l.models[a.ContainerID+string(a.Type)]; k != nil {
			k.lost = false
		}
	}
	there := map[string]*probeModel{}
	l.each(func(r Running, kind model.ProbeType, p *v1.Probe) {
		k := l.models[r.ID+string(kind)]
		if k == nil {
			k = l.begin(r, kind, p)
		}
		// A failure that the pass has observed is checked again once it is old.
		seen := before[r.ID][kind].CountedAt.Equal(k.counted)
		if seen && k.hold && k.result == bad && l.now.Sub(k.counted) > model.Seconds(p.FailureThreshold*p.PeriodSeconds) {
			k.hold, k.run = false, p.FailureThreshold-1
		}
		there[r.ID+string(kind)] = k
		if on, ok := l.disk[r.ID][kind]; !k.counted.IsZero() && (!ok || on.Result != k.result) {
			l.fail("%s %s is %+v, and on disk %+v", r.ID, kind, k, on)
		}
	})
	l.models = there
	if len(l.Verdicts()) != len(there) {
		l.fail("%d workers, not %d", len(l.Verdicts()), len(there))
	}
}

// begin returns the model of a new probe.
func (l *life) begin(r Running, kind model.ProbeType, p *v1.Probe) *probeModel {
	initial := map[model.ProbeType]model.ProbeResult{
		model.Liveness:  good,
		model.Readiness: bad,
		model.Startup:   unknown,
	}
	k := &probeModel{result: initial[kind], within: l.now}
	if on, ok := l.disk[r.ID][kind]; ok {
		k.result, k.last, k.run, k.hold, k.counted, k.ranAt = on.Result, on.Last, on.Run, on.OnHold, on.CountedAt, on.CountedAt
		if on.Last != on.Result && l.now.Sub(on.CountedAt) > model.Seconds(p.FailureThreshold*p.PeriodSeconds) {
			k.last, k.run = "", 0
		}
	}
	for _, other := range l.pending {
		// The container was removed and came back before the result.
		k.asking = k.asking || other.ask.Target.ContainerID == r.ID && other.ask.Type == kind
	}
	return k
}

func (l *life) write(a probe.Report) {
	if l.disk[a.ContainerID] == nil {
		l.disk[a.ContainerID] = records{}
	}
	l.disk[a.ContainerID][a.Type] = a.Record
}

// each visits the current probes.
func (l *life) each(visit func(r Running, kind model.ProbeType, p *v1.Probe)) {
	for _, r := range l.seen.Running {
		ref, _ := podspec.FindContainer(l.seen.Desired.Pod, r.Name)
		for _, kind := range model.ProbeTypes() {
			if p := model.ProbeOf(ref.Container, kind); p != nil && (!l.seen.Deleting || kind == model.Readiness) {
				visit(r, kind, p)
			}
		}
	}
}

// waits reports whether a probe waits for the startup probe.
func (l *life) waits(id string, kind model.ProbeType) bool {
	startup := l.models[id+string(model.Startup)]
	return kind != model.Startup && startup != nil && startup.result != good
}

// next runs the due probes of the Set, and checks that they are right and complete.
func (l *life) next() time.Time {
	asks, wake := l.Next(l.now)
	for _, ask := range asks {
		l.begun(ask)
	}
	l.each(func(r Running, kind model.ProbeType, p *v1.Probe) {
		k := l.models[r.ID+string(kind)]
		if k.asking || k.hold || l.waits(r.ID, kind) {
			return
		}
		period := model.Seconds(p.PeriodSeconds)
		earliest := r.StartedAt.Add(model.Seconds(p.InitialDelaySeconds))
		if by := later(earliest, later(k.ranAt, later(k.within, k.counted)).Add(period)); l.now.After(by) {
			if startup := l.models[r.ID+string(model.Startup)]; startup == nil || l.now.After(startup.counted) {
				l.fail("%s %s should have been asked by %s: %+v", r.ID, kind, by.Sub(noon), k)
			}
		}
	})
	return wake
}

func (l *life) begun(ask DueProbe) {
	id, kind := ask.Target.ContainerID, ask.Type
	k := l.models[id+string(kind)]
	if k == nil {
		l.fail("asked what does not run: %s %s", id, kind)
	}
	l.note("asks %s %s", id, kind)
	var r Running
	var p *v1.Probe
	l.each(func(other Running, otherKind model.ProbeType, spec *v1.Probe) {
		if other.ID == id && otherKind == kind {
			r, p = other, spec
		}
	})
	switch gap := l.now.Sub(k.ranAt); {
	case p == nil:
		l.fail("asked what is not there: %s %s", id, kind)
	case k.asking:
		l.fail("asked twice at once: %s %s", id, kind)
	case k.hold:
		l.fail("asked on hold: %s %s", id, kind)
	case l.waits(id, kind):
		l.fail("asked before it has started: %s %s", id, kind)
	case l.now.Sub(r.StartedAt) < model.Seconds(p.InitialDelaySeconds):
		l.fail("asked during its initial delay: %s %s", id, kind)
	case !k.ranAt.IsZero() && gap < model.Seconds(p.PeriodSeconds) && !k.now:
		l.fail("asked after %s: %s %s", gap, id, kind)
	}
	k.asking, k.now, k.ranAt = true, false, l.now
	l.runs[kind]++
	took := time.Duration(l.rand.IntN(300)) * time.Millisecond
	if l.rand.IntN(10) == 0 {
		took = time.Duration(l.rand.IntN(15000)) * time.Millisecond
	}
	l.pending = append(l.pending, pendingAnswer{ask, l.now.Add(took), k})
}

// done delivers a result, and checks that the Set counts it as the model does.
func (l *life) done(a pendingAnswer) {
	id, kind := a.ask.Target.ContainerID, a.ask.Type
	verdict := []probe.Verdict{probe.Success, probe.Success, probe.Warning, probe.Failure, probe.Failure, probe.Unknown}[l.rand.IntN(6)]
	change := l.Done(l.now, a.ask, probe.Result{Verdict: verdict})
	l.note("%s %s says %s: keep %t, look %t, %+v", id, kind, verdict, change.NeedsWrite(), change.NeedsPass, change.Record)
	written := change.NeedsWrite() && change.Changed && l.rand.IntN(5) > 0
	if written {
		l.write(change)
	}
	k := l.models[id+string(kind)]
	if k == nil {
		if change.NeedsWrite() || change.NeedsPass {
			l.fail("%s %s does not run, and %+v", id, kind, change)
		}
		return
	}
	k.asking, k.lost = false, (change.NeedsPass || k.lost) && !written
	if k != a.model || l.now.Sub(a.ask.At) > model.Seconds(a.ask.Probe.PeriodSeconds) {
		// After a slow result, the next run comes within a period.
		k.within = l.now
	}
	if k != a.model || *a.ask.Probe != *l.probeOf(id, kind) {
		// The probe has another worker now, or has changed.
		l.adopt(id, kind, k)
		return
	}
	before := k.result
	k.count(l.now, kind, a.ask.Probe, verdict)
	for _, v := range l.Verdicts() {
		if v.ContainerID == id && v.Type == kind && (v.Record.Result != k.result || v.Record.OnHold != k.hold || v.Record.Run != k.run) {
			l.fail("%s %s is %+v, not %+v", id, kind, v.Record, k)
		}
	}
	if k.result != before && !change.NeedsPass {
		l.fail("%s %s changed without a notification", id, kind)
	}
}

func (l *life) probeOf(id string, kind model.ProbeType) (p *v1.Probe) {
	l.each(func(r Running, k model.ProbeType, spec *v1.Probe) {
		if r.ID == id && k == kind {
			p = spec
		}
	})
	return p
}

// adopt copies the state of the Set for a result that the model cannot decide.
func (l *life) adopt(id string, kind model.ProbeType, k *probeModel) {
	for _, v := range l.Verdicts() {
		if v.ContainerID == id && v.Type == kind {
			k.result, k.last, k.run, k.hold, k.counted = v.Record.Result, v.Record.Last, v.Record.Run, v.Record.OnHold, v.Record.CountedAt
		}
	}
}

// count applies a result to the model.
func (k *probeModel) count(now time.Time, kind model.ProbeType, p *v1.Probe, verdict probe.Verdict) {
	result := map[probe.Verdict]model.ProbeResult{probe.Success: good, probe.Warning: good, probe.Failure: bad}[verdict]
	if result == "" {
		return
	}
	if k.counted = now; k.last != result {
		k.last, k.run = result, 0
	}
	k.run++
	if result == good && k.run >= p.SuccessThreshold || result == bad && k.run >= p.FailureThreshold {
		k.result = result
		if k.hold = kind == model.Startup || kind == model.Liveness && result == bad; k.hold {
			k.run = 0
		}
	}
}

// event makes one random event happen.
func (l *life) event() {
	switch n := l.rand.IntN(100); {
	case n < 25:
		l.turn()
	case n < 35:
		l.edit()
	case n < 45:
		l.slower()
	case n < 70:
		l.note("looks")
		l.sync()
	case n < 90:
		name := []string{"a", "b"}[l.rand.IntN(2)]
		l.MakeDue(l.now, "u", name)
		for _, r := range l.seen.Running {
			if k := l.models[r.ID+string(model.Readiness)]; r.Name == name && k != nil && !k.asking {
				k.now = true
			}
		}
		l.note("asks %s now", name)
	case n < 92:
		l.seen.Deleting = !l.seen.Deleting
		l.note("deleting %t", l.seen.Deleting)
		l.sync()
	case n < 94:
		l.Forget("u")
		l.models = map[string]*probeModel{}
		l.note("forgets")
		l.sync()
	case n < 97:
		l.restart()
	}
}

// TestRandomProbeLives checks random lives. No probe runs twice at once, during its initial delay, before the startup
// probe has passed, on hold, within its period (except by MakeDue), or without a running container. Each probe runs in
// time, and results count as in the kubelet.
func TestRandomProbeLives(t *testing.T) {
	runs := map[model.ProbeType]int{}
	for seed := range uint64(40) {
		l := newLife(t, seed)
		l.note("seed %d", seed)
		event := l.now
		for range 1500 {
			wake := l.next()
			at := event
			if !wake.IsZero() && wake.Before(at) {
				at = wake
			}
			first := -1
			for i, a := range l.pending {
				if !a.at.After(at) {
					first, at = i, a.at
				}
			}
			l.now = at
			switch {
			case first >= 0:
				a := l.pending[first]
				l.pending = append(l.pending[:first], l.pending[first+1:]...)
				l.done(a)
			case !at.Before(event):
				l.event()
				event = l.now.Add(time.Duration(l.rand.IntN(8000)) * time.Millisecond)
			}
		}
		for kind, n := range l.runs {
			runs[kind] += n
		}
	}
	for _, kind := range model.ProbeTypes() {
		if runs[kind] < 1000 {
			t.Errorf("%s was asked %d times in all", kind, runs[kind])
		}
	}
	t.Log(runs)
}
