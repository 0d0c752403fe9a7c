package runtime

import (
	"errors"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/wait"
)

const probedPod = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: a, image: 'i:1', PROBE: {exec: {command: [x]}, failureThreshold: THRESHOLD, periodSeconds: 10}}]
`

// probeLab is a pod with one probe, whose results are set in advance.
type probeLab struct {
	*faultLab
	kind    model.ProbeType
	desired *podspec.Desired
	fails   bool
}

func newProbeLab(t *testing.T, kind model.ProbeType, threshold string) *probeLab {
	t.Helper()
	text := strings.NewReplacer("PROBE", string(kind)+"Probe", "THRESHOLD", threshold).Replace(probedPod)
	l := &probeLab{faultLab: newFaultLab(t, faultShape{}), kind: kind}
	l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse {
		if l.fails {
			return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stdout: []byte("no")}
		}
		return &runtimeapi.ExecSyncResponse{}
	})
	l.desired = l.load(text)
	l.apply(t, text)
	return l
}

// round is a process that ran the probe and has not recorded the results yet.
type round struct {
	seen    *snapshot.Pod
	reports []probe.Report
}

func (l *probeLab) ask(fails bool) *round {
	l.t.Helper()
	seen, err := l.engine.Observer.Observe(l.t.Context(), model.RefOf(l.desired.Pod), l.desired)
	if err != nil {
		l.t.Fatal(err)
	}
	l.fails = fails
	return &round{seen, l.engine.Prober.RunAll(l.t.Context(), l.desired, seen, probe.Options{})}
}

// keep records the results of a round, and returns the new record.
func (l *probeLab) keep(r *round) model.ProbeRecord {
	l.t.Helper()
	if err := l.engine.Prober.Record(l.t.Context(), model.RefOf(l.desired.Pod), r.seen, r.reports); err != nil {
		l.t.Fatal(err)
	}
	record := l.records()[r.reports[0].ContainerID][l.kind]
	if r.reports[0].Record != record {
		l.t.Errorf("reported %+v, kept %+v", r.reports[0].Record, record)
	}
	return record
}

func (l *probeLab) records() probe.Memory {
	l.t.Helper()
	j, err := l.layout.Pod(l.desired.Pod.UID).Checkpoint().Read()
	if err != nil {
		l.t.Fatal(err)
	}
	return j.Probes
}

// TestLaterProbeCounts checks that with two concurrent processes the later probe counts, in any order of their
// writes. No container that has passed is stopped.
func TestLaterProbeCounts(t *testing.T) {
	for _, kind := range model.ProbeTypes() {
		t.Run(string(kind), func(t *testing.T) {
			l := newProbeLab(t, kind, "1")
			slow := l.ask(true)
			l.clock.Advance(20 * time.Second)
			if record := l.keep(l.ask(false)); record.Result != model.ProbeSuccess {
				t.Fatalf("%+v", record)
			}
			if record := l.keep(slow); record.Result != model.ProbeSuccess || record.Message != "" || slow.reports[0].Counted {
				t.Errorf("the slow one set it to %+v", record)
			}
			p, err := l.engine.Pods.Plan(t.Context(), l.desired, plan.Options{})
			if err != nil || len(p.Steps) > 0 {
				t.Errorf("planned %+v, %v", p.Steps, err)
			}
		})
	}
}

// TestPassedStartupProbeStays checks that a startup probe that has passed is not undone by a run that began before and
// counts after.
func TestPassedStartupProbeStays(t *testing.T) {
	l := newProbeLab(t, model.Startup, "1")
	passed := l.ask(false)
	l.clock.Advance(20 * time.Second)
	slow := l.ask(true)
	l.keep(passed)
	if record := l.keep(slow); record.Result != model.ProbeSuccess || !record.OnHold || record.Message != "" {
		t.Errorf("%+v", record)
	}
}

// TestRunsOfSeveralProcessesAddUp checks that each process continues the recorded count, once per period.
func TestRunsOfSeveralProcessesAddUp(t *testing.T) {
	l := newProbeLab(t, model.Liveness, "2")
	first := l.ask(true)
	second := l.ask(true)
	l.clock.Advance(20 * time.Second)
	third := l.ask(true)
	if record := l.keep(first); record.Run != 1 {
		t.Errorf("the first: %+v", record)
	}
	if record := l.keep(second); record.Run != 1 || second.reports[0].Counted {
		t.Errorf("the second, in the same period: %+v", record)
	}
	if record := l.keep(third); record.Result != model.ProbeFailure || !record.OnHold {
		t.Errorf("the third: %+v", record)
	}
}

// TestProbesCountAfterTheClockWasSetBack checks that a record with a time in the future counts as older.
func TestProbesCountAfterTheClockWasSetBack(t *testing.T) {
	l := newProbeLab(t, model.Liveness, "2")
	l.keep(l.ask(true))
	l.clock.Advance(-day)
	if record := l.keep(l.ask(true)); record.Result != model.ProbeFailure {
		t.Errorf("%+v", record)
	}
}

// TestSlowProbesKeepOtherRecords checks that a process keeps another process's record of a container that it has not
// seen yet, and removes those of removed containers.
func TestSlowProbesKeepOtherRecords(t *testing.T) {
	l := newProbeLab(t, model.Readiness, "1")
	slow := l.ask(true)
	old := slow.reports[0].ContainerID
	l.keep(slow)
	slow = l.ask(true)
	l.server.Exit("a", 1)
	l.clock.Advance(time.Minute)
	l.apply(t, strings.NewReplacer("PROBE", "readinessProbe", "THRESHOLD", "1").Replace(probedPod))
	l.clock.Advance(time.Minute)
	quick := l.ask(false)
	l.keep(quick)
	l.keep(slow)
	if record := l.records()[quick.reports[0].ContainerID][model.Readiness]; record.Result != model.ProbeSuccess {
		t.Errorf("of the newer container is left: %+v", record)
	}
	if _, err := l.engine.Client.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: old}); err != nil {
		t.Fatal(err)
	}
	l.keep(l.ask(false))
	if records := l.records(); records[old] != nil || len(records) != 1 {
		t.Errorf("the stored results: %+v", records)
	}
}

// TestMemoryOfRoundsLearnsFromOthers checks that rounds with their own counts take over recorded ones.
func TestMemoryOfRoundsLearnsFromOthers(t *testing.T) {
	l := newProbeLab(t, model.Liveness, "3")
	memory := probe.Memory{}
	round := func() probe.Report {
		l.t.Helper()
		l.fails = true
		reports, err := l.engine.Prober.Probe(t.Context(), l.desired, probe.Options{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		l.clock.Advance(20 * time.Second)
		return reports[0]
	}
	round()
	l.keep(l.ask(true))
	l.clock.Advance(20 * time.Second)
	last := round()
	if record := memory[last.ContainerID][model.Liveness]; !record.OnHold || record != last.Record {
		t.Errorf("it remembers %+v, and reports %+v", record, last.Record)
	}
}

func (l *probeLab) plan() *plan.Plan {
	l.t.Helper()
	p, err := l.engine.Pods.Plan(l.t.Context(), l.desired, plan.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// TestStaleFailureIsActedOn checks that the next result confirms a stale failure and restarts the container, or cancels
// the failure.
func TestStaleFailureIsActedOn(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		l := newProbeLab(t, model.Liveness, "1")
		l.keep(l.ask(true))
		l.clock.Advance(time.Minute)
		if p := l.plan(); len(p.Holds) != 1 || p.Holds[0].Reason != model.ProbeStale {
			t.Fatalf("it is not stale: %v", p.Holds)
		}
		l.keep(l.ask(!recovers))
		if p := l.plan(); len(p.Holds) > 0 || (len(p.Steps) == 0) != recovers {
			t.Errorf("recovered %t: holds %v, %d steps", recovers, p.Holds, len(p.Steps))
		}
	}
}

// TestTimeoutNamesProbeMessages checks that the error of a timeout explains why the pod is not ready.
func TestTimeoutNamesProbeMessages(t *testing.T) {
	l := newProbeLab(t, model.Readiness, "1")
	l.fails = true
	ctx := l.server.ExpireAt(t.Context(), "ExecSync", "ListContainers", 10)
	_, err := l.engine.Waiter.Wait(ctx, l.desired, wait.Ready, executor.Options{})
	if timeout := (*wait.TimeoutError)(nil); !errors.As(err, &timeout) ||
		!strings.Contains(err.Error(), "readiness probe of a: exit code 1: no") {
		t.Errorf("%v", err)
	}
}
