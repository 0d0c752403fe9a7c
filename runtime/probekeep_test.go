package runtime

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// running returns the ID of the running container.
func (l *probeLab) running() string {
	l.t.Helper()
	list, err := l.engine.Observer.ListContainers(l.t.Context(), model.RefOf(l.desired.Pod))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range list {
		if c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			return c.GetId()
		}
	}
	l.t.Fatal("no container runs")
	return ""
}

// answer returns a current probe result that alone decides the verdict.
func (l *probeLab) answer(verdict probe.Verdict) probe.Report {
	l.t.Helper()
	c := &l.desired.Pod.Spec.Containers[0]
	a := probe.Report{
		Container: "a", ContainerID: l.running(), Type: l.kind, Probe: model.ProbeOf(c, l.kind),
		Result: probe.Result{Verdict: verdict, Output: "no", Message: "no"}, Changed: true, IsEvent: true, Counted: true,
	}
	a.Fold(model.InitialProbe(l.kind), l.clock.Now())
	a.Known = l.records()[a.ContainerID][l.kind]
	return a
}

func (l *probeLab) keepAnswers(answers ...probe.Report) {
	l.t.Helper()
	if err := l.engine.Prober.RecordReports(l.t.Context(), l.clock.Now(), model.RefOf(l.desired.Pod), answers); err != nil {
		l.t.Fatal(err)
	}
}

// unhealthy counts the events of failed probes.
func (l *probeLab) unhealthy() (count int) {
	l.t.Helper()
	h, err := events.History(l.layout, model.RefOf(l.desired.Pod))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range h.Events {
		if e.Reason == "Unhealthy" && e.Message == l.kind.Title()+" probe failed: no" && e.Container == "a" {
			count += e.Count
		}
	}
	return count
}

// TestSingleProbeRuns checks that a probe of a known container runs without an observation of its pod, and three times
// if it cannot run.
func TestSingleProbeRuns(t *testing.T) {
	l := newProbeLab(t, model.Liveness, "1")
	c := &l.desired.Pod.Spec.Containers[0]
	target := probe.Target{ContainerID: l.running(), Container: c}
	l.proxy.Reset()
	for fails, want := range map[bool]probe.Verdict{false: probe.Success, true: probe.Failure} {
		l.fails = fails
		if r := l.engine.Prober.RunOne(t.Context(), c.LivenessProbe, target, nil); r.Verdict != want || r.Attempts != 1 {
			t.Errorf("%+v, not %s", r, want)
		}
	}
	target.ContainerID = "unknown"
	if r := l.engine.Prober.RunOne(t.Context(), c.LivenessProbe, target, nil); r.Verdict != probe.Unknown || r.Attempts != 3 {
		t.Errorf("%+v", r)
	}
	for _, call := range l.proxy.Calls() {
		if call != "ExecSync" {
			t.Errorf("it queried the pod: %s", call)
		}
	}
}

// TestAnswersAreKept checks that a failure is written to disk and reported once, and that the pod's next pass acts on
// it.
func TestAnswersAreKept(t *testing.T) {
	l := newProbeLab(t, model.Liveness, "1")
	a := l.answer(probe.Failure)
	l.keepAnswers(a)
	if r := l.records()[a.ContainerID][model.Liveness]; r != a.Record || !r.OnHold || l.unhealthy() != 1 {
		t.Errorf("kept %+v, %d events", r, l.unhealthy())
	}
	if p := l.plan(); !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.StopContainer }) {
		t.Errorf("planned %+v", p.Steps)
	}
}

// TestReadinessMarksTheStart checks that the first success is recorded as the time at which the container became ready.
func TestReadinessMarksTheStart(t *testing.T) {
	l := newProbeLab(t, model.Readiness, "1")
	l.keepAnswers(l.answer(probe.Success))
	h, err := l.layout.Pod(l.desired.Pod.UID).History().Read()
	if err != nil || len(h.Spans) == 0 || h.Spans[len(h.Spans)-1].Kind != "Ready" || l.unhealthy() > 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestNothingIsWrittenAgain checks that an existing record is not rewritten, that an event alone writes only the event,
// and that a result without a use is not written.
func TestNothingIsWrittenAgain(t *testing.T) {
	l := newProbeLab(t, model.Readiness, "1")
	a := l.answer(probe.Failure)
	l.keepAnswers(a)
	path := l.layout.Pod(l.desired.Pod.UID).Checkpoint().Path()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	silent, reported := a, a
	silent.IsEvent, reported.Changed = false, false
	reported.Record.Run = 7
	l.keepAnswers(silent)
	l.keepAnswers(reported)
	l.keepAnswers()
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the checkpoint was written again: %v", err)
	}
	if l.unhealthy() != 2 || l.records()[a.ContainerID][model.Readiness] != a.Record {
		t.Errorf("%d events, %+v", l.unhealthy(), l.records())
	}
}

// marked records that the deletion of the pod has begun.
func (l *probeLab) marked() {
	l.t.Helper()
	pod := l.layout.Pod(l.desired.Pod.UID)
	j, err := pod.Checkpoint().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	j.Deletion = &model.Deletion{At: l.clock.Now()}
	if err := pod.Checkpoint().Write(j); err != nil {
		l.t.Fatal(err)
	}
}

// TestReadinessDuringDeletion checks that readiness is recorded while a pod is being deleted.
func TestReadinessDuringDeletion(t *testing.T) {
	l := newProbeLab(t, model.Readiness, "1")
	a := l.answer(probe.Failure)
	l.marked()
	l.keepAnswers(a)
	if l.records()[a.ContainerID][model.Readiness] != a.Record {
		t.Errorf("kept %+v", l.records())
	}
}

// TestAnswersThatAreNotKept checks results of removed containers and pods, of pods that were never applied, of pods
// being deleted except readiness, and of probes that left the manifest.
func TestAnswersThatAreNotKept(t *testing.T) {
	for name, happens := range map[string]func(l *probeLab, a *probe.Report){
		"the container is gone": func(_ *probeLab, a *probe.Report) { a.ContainerID = "gone" },
		"another container":     func(_ *probeLab, a *probe.Report) { a.Container = "b" },
		"another probe": func(_ *probeLab, a *probe.Report) {
			a.Probe = a.Probe.DeepCopy()
			a.Probe.Exec.Command = []string{"y"}
		},
		"the probe is gone": func(l *probeLab, _ *probe.Report) {
			l.apply(l.t, strings.NewReplacer(
				"PROBE: {exec: {command: [x]}, failureThreshold: THRESHOLD, periodSeconds: 10}", "env: []",
			).Replace(probedPod))
		},
		"it is being deleted": func(l *probeLab, _ *probe.Report) { l.marked() },
		"the pod is gone": func(l *probeLab, _ *probe.Report) {
			if _, err := l.engine.Pods.Delete(l.t.Context(), model.RefOf(l.desired.Pod), executor.Options{}); err != nil {
				l.t.Fatal(err)
			}
		},
	} {
		l := newProbeLab(t, model.Liveness, "1")
		a := l.answer(probe.Failure)
		happens(l, &a)
		l.keepAnswers(a)
		if records := l.records(); len(records) > 0 || l.unhealthy() > 0 {
			t.Errorf("%s: kept %+v, %d events", name, records, l.unhealthy())
		}
	}
}

// TestAgentKeepsNewerResults checks that a newer result or decision of another process stays, unless its time is only
// in the future.
func TestAgentKeepsNewerResults(t *testing.T) {
	for name, c := range map[string]struct {
		kind  model.ProbeType
		after time.Duration
		known bool
		kept  bool
	}{
		"decided since":                 {model.Liveness, time.Second, false, false},
		"found since":                   {model.Readiness, time.Second, false, false},
		"found before":                  {model.Readiness, -time.Second, false, true},
		"decided before":                {model.Liveness, -time.Second, false, false},
		"the agent knew":                {model.Liveness, -time.Second, true, true},
		"too old to act on":             {model.Liveness, -time.Minute, false, true},
		"found by a clock set back":     {model.Liveness, time.Hour, false, true},
		"known, and the clock set back": {model.Liveness, time.Hour, true, true},
	} {
		l := newProbeLab(t, c.kind, "1")
		l.clock.Advance(2 * time.Minute)
		ours := l.answer(probe.Success)
		l.clock.Advance(c.after)
		theirs := l.answer(probe.Failure)
		l.keepAnswers(theirs)
		l.clock.Advance(-c.after)
		if c.known {
			ours.Known = theirs.Record
		}
		l.clock.Advance(2 * time.Second)
		l.keepAnswers(ours)
		if got := l.records()[ours.ContainerID][c.kind].Result; (got == model.ProbeSuccess) != c.kept {
			t.Errorf("%s: it is %s", name, got)
		}
	}
}

// TestRecordsOfRemovedContainers checks that they are removed with the next recorded result. If the runtime does
// not list its containers, they stay.
func TestRecordsOfRemovedContainers(t *testing.T) {
	l := newProbeLab(t, model.Readiness, "1")
	old := l.answer(probe.Failure)
	l.keepAnswers(old)
	l.server.Exit("a", 1)
	l.clock.Advance(time.Minute)
	l.apply(t, strings.NewReplacer("PROBE", "readinessProbe", "THRESHOLD", "1").Replace(probedPod))
	if _, err := l.engine.Client.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{
		ContainerId: old.ContainerID,
	}); err != nil {
		t.Fatal(err)
	}
	a := l.answer(probe.Failure)
	l.proxy.Disturb(runtimetest.Disturbance{Method: "ListContainers", Fail: codes.Internal})
	l.keepAnswers(a)
	if records := l.records(); len(records) != 2 {
		t.Errorf("of an unknown list: %+v", records)
	}
	l.clock.Advance(time.Minute)
	l.keepAnswers(l.answer(probe.Success))
	if records := l.records(); len(records) != 1 || records[a.ContainerID][model.Readiness].Result != model.ProbeSuccess {
		t.Errorf("%+v", records)
	}
}
