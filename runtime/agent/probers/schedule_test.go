package probers

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

// TestSlowProbes checks that a probe that is slower than its period runs again at the next whole period after its
// result. It never runs twice at once, and delays no other probe.
func TestSlowProbes(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 9 * time.Second: 10 * time.Second, 10 * time.Second: 10 * time.Second,
		10*time.Second + 1: 20 * time.Second, 35 * time.Second: 40 * time.Second,
	} {
		l := newLab(t, map[model.ProbeType]*v1.Probe{model.Liveness: every(10), model.Readiness: every(7)})
		asks, _ := l.Next(l.now)
		slow := asks[0]
		l.answer(asks[1], probe.Success)
		for l.now = noon; l.now.Before(noon.Add(took)); l.now = l.now.Add(time.Second) {
			if ran := l.tick(); slices.Contains(ran, model.Liveness) {
				t.Errorf("%s: asked twice at once", took)
			}
		}
		l.want(model.Readiness, good, int32(1+(l.now.Add(-time.Second).Sub(noon)/(7*time.Second))), "beside a slow one")
		l.now = noon.Add(took)
		l.answer(slow, probe.Success)
		if due := dueOf(l.Set, model.Liveness); !due.Equal(noon.Add(want)) {
			t.Errorf("it took %s: asked again after %s, not %s", took, due.Sub(noon), want)
		}
	}
}

// dueOf returns the time of the next run of a probe of a Set with one pod and one container. It is zero while the probe
// runs, waits for another probe or is decided.
func dueOf(s *Set, kind model.ProbeType) time.Time {
	for _, v := range s.Verdicts() {
		if v.Type == kind {
			return dueAt(s, &v)
		}
	}
	return time.Time{}
}

// dueAt returns the time of the next run of a probe, as dueOf does.
func dueAt(s *Set, v *Verdict) time.Time {
	if c := s.find(v.Pod.UID, v.Container); s.mayRun(c, v.Type) {
		return c.workers[v.Type].due
	}
	return time.Time{}
}

// TestRunNow checks that readiness runs at once, and each period from then on, and that the result counts. A probe that
// is running, delayed, waiting for its startup probe or unknown is not affected.
func TestRunNow(t *testing.T) {
	l := newLab(t, map[model.ProbeType]*v1.Probe{model.Liveness: every(10), model.Readiness: every(10)})
	l.fails[model.Readiness] = true
	l.tick()
	l.fails[model.Readiness], l.now = false, noon.Add(3*time.Second)
	l.MakeDue(l.now, "u", "a")
	l.MakeDue(l.now, "u", "b")
	l.MakeDue(l.now, "v", "a")
	asks, wake := l.Next(l.now)
	if len(asks) != 1 || asks[0].Type != model.Readiness || !wake.Equal(noon.Add(10*time.Second)) {
		t.Fatalf("asked %+v, then at %s", asks, wake.Sub(noon))
	}
	l.MakeDue(l.now, "u", "a")
	if again, _ := l.Next(l.now); len(again) > 0 {
		t.Errorf("an answer is under way: %+v", again)
	}
	if change := l.answer(asks[0], probe.Success); !change.NeedsPass || l.record(model.Readiness).Result != good {
		t.Errorf("its answer counts: %+v", change)
	}
	if due := dueOf(l.Set, model.Readiness); !due.Equal(noon.Add(13 * time.Second)) {
		t.Errorf("asked again after %s", due.Sub(noon))
	}

	l = one(t, model.Readiness, with(every(10), func(p *v1.Probe) { p.InitialDelaySeconds = 5 }))
	l.MakeDue(l.now, "u", "a")
	if due := dueOf(l.Set, model.Readiness); !due.Equal(noon.Add(5 * time.Second)) {
		t.Errorf("during its delay, due after %s", due.Sub(noon))
	}
	l = newLab(t, map[model.ProbeType]*v1.Probe{model.Startup: every(10), model.Readiness: every(10)})
	l.MakeDue(l.now, "u", "a")
	if ran := l.tick(); !slices.Equal(ran, []model.ProbeType{model.Startup}) {
		t.Errorf("before it has started: %v", ran)
	}
}

// TestFirstProbesAreSpread checks that containers that ran before the agent are probed within a period of its start,
// and later ones at once. A result is not counted twice within its period.
func TestFirstProbesAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		began, started, now, counted time.Duration
		delay                        int32
		want                         time.Duration
	}{
		"ran before":                      {began: 0, started: -time.Hour, want: 5 * time.Second},
		"ran before, seen later":          {began: 0, started: -time.Hour, now: 9 * time.Second, want: 5 * time.Second},
		"ran before, seen a period later": {began: 0, started: -time.Hour, now: 10 * time.Second, want: 0},
		"started later":                   {began: 0, started: 0, now: time.Second, want: 0},
		"its delay is longer":             {began: 0, started: -10 * time.Second, delay: 18, want: 8 * time.Second},
		"counted just before":             {began: 0, started: -time.Hour, counted: -time.Second, want: 9 * time.Second},
		"counted long since":              {began: 0, started: -time.Hour, counted: -time.Minute, want: 5 * time.Second},
		"counted by a clock set back":     {began: 0, started: -time.Hour, counted: time.Hour, want: 5 * time.Second},
		"started by a clock set back":     {began: 0, started: 24 * time.Hour, delay: 18, want: 0},
		"started a moment ahead":          {began: 0, started: time.Second, delay: 18, want: 18 * time.Second},
	} {
		l := one(t, model.Readiness, with(every(10), func(p *v1.Probe) { p.InitialDelaySeconds = c.delay }))
		l.Set, l.now = New(noon.Add(c.began), func() float64 { return 0.5 }), noon.Add(c.now)
		l.seen.Running[0].StartedAt = noon.Add(c.started)
		if c.counted != 0 {
			l.seen.Running[0].Records = records{model.Readiness: {Result: good, Last: good, Run: 1, CountedAt: noon.Add(c.counted)}}
		}
		l.Sync(l.now, l.seen)
		if due := dueOf(l.Set, model.Readiness); !due.Equal(l.now.Add(c.want)) {
			t.Errorf("%s: due after %s, not %s", name, due.Sub(l.now), c.want)
		}
	}
}

// TestEditedProbes checks that an edited probe runs a period after the last run, and keeps its count. A result of the
// earlier probe is ignored.
func TestEditedProbes(t *testing.T) {
	l := one(t, model.Liveness, every(10))
	l.fails[model.Liveness] = true
	l.ticks(1)
	asks, _ := l.Next(l.now)
	l.seen.Desired = podOf(v1.Container{Name: "a", LivenessProbe: every(4), ReadinessProbe: every(6)})
	l.now = noon.Add(11 * time.Second)
	l.Sync(l.now, l.seen)
	l.answer(asks[0], probe.Failure)
	l.want(model.Liveness, good, 1, "edited")
	if due := dueOf(l.Set, model.Liveness); !due.Equal(noon.Add(14 * time.Second)) {
		t.Errorf("the edited one is due after %s", due.Sub(noon))
	}
	if ran := l.tick(); !slices.Equal(ran, []model.ProbeType{model.Readiness}) {
		t.Errorf("the new one: %v", ran)
	}
	l.now = noon.Add(14 * time.Second)
	if asks, _ = l.Next(l.now); len(asks) != 1 || asks[0].Probe.PeriodSeconds != 4 {
		t.Errorf("asked %+v", asks)
	}
}

// TestAddresses checks that a probe uses the container's current address.
func TestAddresses(t *testing.T) {
	l := one(t, model.Liveness, every(10))
	l.ticks(1)
	l.seen.Running[0].Address = "10.0.0.3"
	l.Sync(l.now, l.seen)
	if asks, _ := l.Next(l.now); asks[0].Target.PodIP != "10.0.0.3" || asks[0].Target.ContainerID != "1" || asks[0].Pod.Name != "web" {
		t.Errorf("asked %+v", asks)
	}
}

// TestStaleFailures checks that a failure that was too old when a pass observed it is checked again once. It is
// confirmed, and recorded, or canceled.
func TestStaleFailures(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		l := one(t, model.Liveness, every(10))
		l.fails[model.Liveness] = true
		l.ticks(3)
		l.seen.Running[0].Records = records{model.Liveness: l.record(model.Liveness)}
		l.now = l.record(model.Liveness).CountedAt.Add(30 * time.Second)
		l.Sync(l.now, l.seen)
		if ran := l.tick(); len(ran) > 0 {
			t.Errorf("asked while it can be acted on")
		}
		l.now = l.now.Add(1)
		if unkept := l.Sync(l.now, l.seen); len(unkept) > 0 {
			t.Errorf("results to record: %+v", unkept)
		}
		l.fails[model.Liveness] = !recovers
		ran := l.tick()
		if r := l.record(model.Liveness); len(ran) != 1 || (r.Result == good) != recovers || r.OnHold == recovers ||
			!l.last.NeedsPass || !l.last.NeedsWrite() {
			t.Errorf("recovers %t: asked %v, %+v, %+v", recovers, ran, r, l.last)
		}
	}
}

// TestUnobservedFailures checks that a pass that began before a failure does not affect it, however late the
// pass ends. The failure stays decided for the next pass.
func TestUnobservedFailures(t *testing.T) {
	l := one(t, model.Liveness, every(10))
	l.fails[model.Liveness] = true
	l.ticks(3)
	l.now = l.now.Add(time.Hour)
	l.Sync(l.now, l.seen)
	if r := l.record(model.Liveness); r.Result != bad || !r.OnHold || len(l.tick()) > 0 {
		t.Errorf("after a slow pass: %+v", r)
	}
}

// TestResultsOfOtherProcesses checks that a pass takes over newer results of another process. An earlier result of the
// Set then does not count, and the next run is a period later.
func TestResultsOfOtherProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		counted time.Duration
		taken   bool
	}{
		"newer":                   {12 * time.Second, true},
		"between two answers":     {5 * time.Second, true},
		"older":                   {-5 * time.Second, false},
		"by a clock set back":     {time.Hour, false},
		"a moment ahead":          {14 * time.Second, true},
		"as it was, written here": {0, false},
	} {
		l := one(t, model.Liveness, with(every(10), func(p *v1.Probe) { p.FailureThreshold = 10 }))
		l.fails[model.Liveness] = true
		l.ticks(1)
		asks, _ := l.Next(l.now)
		l.now = noon.Add(13 * time.Second)
		others := model.ProbeRecord{Result: good, Last: bad, Run: 5, CountedAt: noon.Add(c.counted)}
		l.seen.Running[0].Records = records{model.Liveness: others}
		l.Sync(l.now, l.seen)
		before, after := int32(1), int32(2)
		if c.taken {
			before, after = 5, 5
		}
		l.want(model.Liveness, good, before, name)
		l.answer(asks[0], probe.Failure)
		l.want(model.Liveness, good, after, name+", and the answer")
		if due := dueOf(l.Set, model.Liveness); c.taken && due.Before(noon.Add(c.counted)) {
			t.Errorf("%s: due after %s", name, due.Sub(noon))
		}
	}
}

// TestVerdictsBesideOthers checks that a verdict keeps its time when another process confirms it, and that failures
// that both have seen within one period count once.
func TestVerdictsBesideOthers(t *testing.T) {
	l := one(t, model.Liveness, every(10))
	receive := func(seconds int, result, last model.ProbeResult, run int32) {
		l.now = noon.Add(time.Duration(seconds) * time.Second)
		l.seen.Running[0].Records = records{model.Liveness: {Result: result, Last: last, Run: run, CountedAt: l.now}}
		l.Sync(l.now, l.seen)
	}
	since := func(seconds int, when string) {
		t.Helper()
		if v := l.Verdicts()[0]; v.Since.Sub(noon) != time.Duration(seconds)*time.Second {
			t.Errorf("%s: %s since %s", when, v.Record.Result, v.Since.Sub(noon))
		}
	}
	l.ticks(1)
	since(0, "passed")
	receive(4, good, good, 2)
	since(0, "confirmed by another")
	if v := l.Verdicts()[0]; !v.LastRun.Equal(l.now) {
		t.Errorf("asked at %s", v.LastRun.Sub(noon))
	}
	l.fails[model.Liveness] = true
	l.advance()
	l.ticks(2) // at 14 and 24 s
	l.want(model.Liveness, good, 2, "two failures")
	receive(26, good, bad, 2)
	l.want(model.Liveness, good, 2, "another has counted two in the same periods")
	since(0, "not decided yet")
	l.advance()
	if l.tick(); l.now.Sub(noon) != 36*time.Second {
		t.Errorf("asked again at %s", l.now.Sub(noon))
	}
	l.want(model.Liveness, bad, 0, "three periods")
	since(36, "failed")

	l = one(t, model.Readiness, every(10))
	l.ticks(1)
	l.now = noon.Add(50 * time.Second)
	l.seen.Running[0].Records = records{model.Readiness: {Result: bad, Last: bad, Run: 3, CountedAt: l.now}}
	l.Sync(l.now, l.seen)
	since(50, "another has decided")
}

// TestOldRunsAreNotContinued checks that an old series of results of another agent is not continued, because later
// results are unknown.
func TestOldRunsAreNotContinued(t *testing.T) {
	for ago, run := range map[time.Duration]int32{30 * time.Second: 2, 31 * time.Second: 0} {
		l := one(t, model.Liveness, every(10))
		l.Set = New(noon, func() float64 { return 0 })
		l.seen.Running[0].Records = records{model.Liveness: {Result: good, Last: bad, Run: 2, CountedAt: noon.Add(-ago)}}
		l.Sync(l.now, l.seen)
		l.want(model.Liveness, good, run, fmt.Sprint(ago))
	}
}

// TestRecordedResults checks that the first result is recorded, and each that changes or decides the verdict, also
// while the pod is being deleted. Others are not recorded. The next Sync returns a verdict that could not be recorded,
// until it is.
func TestRecordedResults(t *testing.T) {
	l := one(t, model.Readiness, every(10))
	var kept []bool
	for i := range 9 {
		l.fails[model.Readiness] = i >= 2 && i < 6
		l.ticks(1)
		kept = append(kept, l.last.NeedsPass)
	}
	if want := []bool{true, false, false, false, true, false, true, false, false}; !slices.Equal(kept, want) {
		t.Errorf("recorded %v, want %v", kept, want)
	}
	if unkept := l.Sync(l.now, l.seen); len(unkept) != 1 || unkept[0].Record != l.record(model.Readiness) ||
		!unkept[0].Changed || unkept[0].IsEvent {
		t.Errorf("the checkpoint has nothing, and gets %+v", unkept)
	}
	l.seen.Running[0].Records = records{model.Readiness: l.record(model.Readiness)}
	if unkept := l.Sync(l.now, l.seen); len(unkept) > 0 {
		t.Errorf("the checkpoint has it, and gets %+v", unkept)
	}
	l.ticks(1)
	if unkept := l.Sync(l.now, l.seen); len(unkept) > 0 {
		t.Errorf("the verdict is the same, and it gets %+v", unkept)
	}
	l.seen.Deleting, l.fails[model.Readiness] = true, true
	l.Sync(l.now, l.seen)
	l.ticks(3)
	if unkept := l.Sync(l.now, l.seen); !l.last.NeedsWrite() || !l.last.NeedsPass || len(unkept) != 1 || unkept[0].Record.Result != bad {
		t.Errorf("of a pod that is being deleted: %+v, %+v", l.last, unkept)
	}
}

// TestSeriesOfOtherProcessesEnd checks that a series of results of another process does not stay in the checkpoint.
func TestSeriesOfOtherProcessesEnd(t *testing.T) {
	l := one(t, model.Liveness, every(10))
	l.ticks(1)
	l.now = noon.Add(5 * time.Second)
	l.seen.Running[0].Records = records{model.Liveness: {Result: good, Last: bad, Run: 1, CountedAt: l.now}}
	l.Sync(l.now, l.seen)
	l.advance()
	if l.tick(); !l.last.NeedsPass || l.last.Record.Last != good {
		t.Errorf("%+v", l.last)
	}
}

// TestEvents checks that a failing probe becomes an event when its message is new, at most once a minute, and when the
// verdict changes.
func TestEvents(t *testing.T) {
	l := one(t, model.Readiness, with(every(10), func(p *v1.Probe) { p.FailureThreshold = 5 }))
	wantMessage := func(verdict probe.Verdict, output string) bool {
		l.t.Helper()
		asks, _ := l.Next(l.now)
		if len(asks) != 1 {
			l.t.Fatalf("asked %v", asks)
		}
		change := l.Done(l.now, asks[0], probe.Result{Verdict: verdict, Output: output})
		l.advance()
		return change.IsEvent
	}
	for i, c := range []struct {
		verdict probe.Verdict
		output  string
		want    bool
	}{
		{probe.Success, "", false},
		{probe.Failure, "no", true},     // 10 s: the first
		{probe.Failure, "no", false},    // the same
		{probe.Failure, "never", false}, // a different message, too soon
		{probe.Success, "", false},
		{probe.Failure, "no", false}, // 50 s
		{probe.Failure, "no", false},
		{probe.Failure, "never", true}, // 70 s: a different message
		{probe.Failure, "never", false},
		{probe.Failure, "never", true}, // 90 s: decides the verdict
		{probe.Failure, "never", false},
		{probe.Success, "", false},                 // 110 s: the verdict changes
		{probe.Failure, "never", true},             // and the message is new again
		{probe.Unknown, "cannot be asked", false},  // too soon
		{probe.Warning, "redirected", false},       // too soon
		{probe.Success, "", false},                 // 150 s
		{probe.Success, "", false},                 // 160 s
		{probe.Success, "", false},                 // 170 s
		{probe.Unknown, "cannot be asked", true},   // 180 s
		{probe.Unknown, "cannot be asked", false},  // the same
		{probe.Failure, "cannot be asked", false},  // too soon
		{probe.Success, "", false},                 // 210 s
		{probe.Warning, "redirected", false},       // 220 s
		{probe.Warning, "redirected", false},       // 230 s
		{probe.Warning, "redirected again", true},  // 240 s
		{probe.Warning, "redirected again", false}, // 250 s
	} {
		if got := wantMessage(c.verdict, c.output); got != c.want {
			t.Errorf("%d, %s %q: reported %t", i, c.verdict, c.output, got)
		}
	}
}

// TestVerdicts checks the order of verdicts and their times: since when, last run, and next run.
func TestVerdicts(t *testing.T) {
	l := newLab(t, map[model.ProbeType]*v1.Probe{model.Startup: every(10), model.Liveness: every(10)})
	later := podOf(v1.Container{Name: "b", ReadinessProbe: every(10)}, v1.Container{Name: "a", ReadinessProbe: every(10)})
	later.Pod.Name, later.Pod.UID = "other", "v"
	l.Sync(l.now, Observation{
		Desired: later,
		Running: []Running{{Name: "b", ID: "3", StartedAt: noon}, {Name: "a", ID: "4", StartedAt: noon}},
	})
	var order []string
	for range 20 {
		order = nil
		for _, v := range l.Verdicts() {
			order = append(order, v.Pod.Name+" "+v.Container+" "+string(v.Type))
		}
		if want := []string{"other a readiness", "other b readiness", "web a liveness", "web a startup"}; !slices.Equal(order, want) {
			t.Fatalf("in the order %v", order)
		}
	}
	l.now = noon.Add(2 * time.Second)
	asks, _ := l.Next(l.now)
	l.now = noon.Add(3 * time.Second)
	l.answer(asks[0], probe.Success)
	all := l.Verdicts()
	got := all[0]
	got.Record = model.ProbeRecord{}
	want := Verdict{
		Pod:         all[0].Pod,
		Container:   "a",
		ContainerID: "4",
		Type:        model.Readiness,
		Since:       noon.Add(3 * time.Second),
		LastRun:     noon.Add(2 * time.Second),
	}
	if due := dueAt(l.Set, &all[0]); !reflect.DeepEqual(got, want) || !due.Equal(noon.Add(12*time.Second)) {
		t.Errorf("%+v, due at %s, not %+v", got, due, want)
	}
	running := func(v *Verdict) bool { return l.running[key{v.ContainerID, v.Type}] }
	if v := all[1]; !running(&v) || !dueAt(l.Set, &v).IsZero() || !v.Since.Equal(noon) {
		t.Errorf("asked and not answered: %+v", v)
	}
	if v := all[2]; running(&v) || !dueAt(l.Set, &v).IsZero() || !v.LastRun.IsZero() {
		t.Errorf("waits for the startup probe: %+v", v)
	}
}
