package syncpod

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/volume"
)

// end makes one pass that ends a pod within a grace period.
func (l *lab) end(text string, grace int64) *executor.Outcome {
	l.t.Helper()
	opts := executor.Options{Options: plan.Options{End: true, GracePeriod: &grace}, Watched: true}
	outcome, err := l.Apply(l.t.Context(), loadPod(l.t, text), opts)
	if err != nil {
		l.t.Fatal(err)
	}
	return outcome
}

// endAll makes passes until the pod has ended, and returns their steps.
func (l *lab) endAll(text string, grace int64) (steps []string) {
	l.t.Helper()
	for range 20 {
		o := l.end(text, grace)
		steps = append(steps, kinds(o.Plan))
		if o.Err() == nil && o.Plan.End.Done && !o.Plan.Pending() {
			return steps
		}
	}
	l.t.Fatalf("it does not end: %v", steps)
	return nil
}

func (l *lab) status(text string) v1.PodStatus {
	l.t.Helper()
	d := loadPod(l.t, text)
	in, _, err := l.observer.Input(l.t.Context(), model.RefOf(d.Pod), d, plan.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	return podstatus.Of(in.State())
}

// checkEnded checks that nothing of an ended pod is left but its records, that its status is final, and that no pass
// starts it again. Then the pod is deleted.
func (l *lab) checkEnded(text string, phase v1.PodPhase, exitCode int32, reason string) {
	l.t.Helper()
	uid := loadPod(l.t, text).Pod.UID
	c, pod := l.checkpoint(text), l.layout.Pod(uid)
	if c.End == nil || !c.End.Done || c.Completion == nil || c.Completion.Phase != phase || snapshot.TakenBy(&c.Memory) != nil {
		l.t.Errorf("record %+v", c.Memory)
	}
	if entries, err := os.ReadDir(pod.Volumes()); len(entries) > 0 {
		l.t.Errorf("volumes are left: %v %v", entries, err)
	}
	s := l.status(text)
	t := s.ContainerStatuses[0].State.Terminated
	if s.Phase != phase || t == nil || t.ExitCode != exitCode || t.Reason != reason {
		l.t.Errorf("status %+v", s)
	}
	calls := len(l.server.Calls())
	again, err := l.Apply(l.t.Context(), loadPod(l.t, strings.ReplaceAll(text, "i:1", "i:2")), executor.Options{})
	if err != nil || len(again.Plan.Steps) > 0 || len(again.Plan.WaitingFor) != 1 {
		l.t.Errorf("an apply after the end: %+v %v", again.Plan, err)
	}
	for _, call := range l.server.Calls()[calls:] {
		if strings.HasPrefix(call, "Run") || strings.HasPrefix(call, "Start") || strings.HasPrefix(call, "Stop") {
			l.t.Errorf("an apply after the end calls %s", call)
		}
	}
	o, err := l.Delete(l.t.Context(), model.RefOf(loadPod(l.t, text).Pod), executor.Options{})
	if err != nil || o.Err() != nil || l.checkpoint(text).Applied != nil || l.server.SandboxOf(string(uid)) != "" {
		l.t.Errorf("a deletion: %v %v", err, o.Err())
	}
}

// TestEnd checks that a pod whose source deletes it ends within the grace period, and that its records stay (kubelet:
// SyncTerminatingPod, SyncTerminatedPod).
func TestEnd(t *testing.T) {
	for code, phase := range map[int32]v1.PodPhase{0: v1.PodSucceeded, 143: v1.PodFailed} {
		l := newLab(t, "i:1", "i:2")
		l.server.Behave("a", runtimetest.Behaviour{Graceful: code == 0})
		l.apply(full)
		first := l.end(full, 7)
		if kinds(first.Plan) != "StopContainer StopSandbox" || *first.Plan.Steps[0].GracePeriodSeconds != 7 || first.Plan.End.Done {
			t.Errorf("%s, %d s, %+v", kinds(first.Plan), *first.Plan.Steps[0].GracePeriodSeconds, first.Plan.End)
		}
		c := l.checkpoint(full)
		if c.End.GracePeriodSeconds != 7 || c.End.Done || c.Completion != nil {
			t.Errorf("record after the stop: %+v %+v", c.End, c.Completion)
		}
		if s := l.status(full); s.Phase != phase || s.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("status after the stop: %+v", s)
		}
		l.clock.Advance(time.Minute)
		if steps := l.endAll(full, 30); strings.Join(steps, ", ") != "RemoveVolume RemoveCgroup, " {
			t.Errorf("then %q", steps)
		}
		if c := l.checkpoint(full); c.End.GracePeriodSeconds != 7 || !c.End.At.Equal(first.Plan.End.At) {
			t.Errorf("the end was extended: %+v", c.End)
		}
		reason := map[int32]string{0: "Completed", 143: "Error"}[code]
		l.checkEnded(full, phase, code, reason)
	}
}

// TestFinishedPods checks that a pod of the API server that finishes by itself gives its volumes back at once, and keeps
// its records and termination messages (kubelet: SyncTerminatedPod), also when it ends later. Other pods keep their
// volumes.
func TestFinishedPods(t *testing.T) {
	once := strings.Replace(full, "spec:", "spec:\n  restartPolicy: Never", 1)
	for _, owner := range []string{podspec.OwnerAPI, ""} {
		l := newLab(t, "i:1", "i:2")
		pass := func(opts plan.Options) *executor.Outcome {
			t.Helper()
			d := loadPod(t, once)
			d.Owner = owner
			o, err := l.Apply(t.Context(), d, executor.Options{Options: opts, Watched: true, ClusterPods: true})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		pod := l.layout.Pod(loadPod(t, once).Pod.UID)
		pass(plan.Options{})
		pass(plan.Options{})
		files, _ := filepath.Glob(filepath.Join(pod.Dir(), "containers", "a", "*"))
		if len(files) != 1 {
			t.Fatal(files)
		}
		if err := os.WriteFile(files[0], []byte("why"), 0o600); err != nil {
			t.Fatal(err)
		}
		l.server.Exit("a", 3)
		pass(plan.Options{})
		if again := pass(plan.Options{}); again.Plan.Pending() {
			t.Errorf("%q: more steps: %s", owner, kinds(again.Plan))
		}
		if volume.Remain(pod) == (owner == podspec.OwnerAPI) {
			t.Errorf("%q: volumes remain: %t", owner, volume.Remain(pod))
		}
		if owner != "" {
			for range 3 {
				pass(plan.Options{End: true, GracePeriod: new(int64(1))})
			}
		}
		if s := l.status(once).ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 3 || s.Message != "why" {
			t.Errorf("%q: %+v", owner, s)
		}
	}
}

// TestEndOfPodsThatDoNotRun checks the end of pods without a container that runs: one that never started has failed, one
// that has finished keeps its phase, and one whose records are lost has failed with an unknown exit code (kubelet:
// TerminatePod).
func TestEndOfPodsThatDoNotRun(t *testing.T) {
	once := strings.Replace(full, "spec:", "spec:\n  restartPolicy: Never", 1)
	unknown := "ContainerStatusUnknown"
	for name, c := range map[string]struct {
		text   string
		before func(l *lab)
		phase  v1.PodPhase
		code   int32
		reason string
	}{
		"the pod was never applied": {full, func(*lab) {}, v1.PodFailed, 137, unknown},
		"the pod never started": {full, func(l *lab) {
			l.server.Fail(runtimetest.Fault{Method: "StartContainer", Times: 1, Err: status.Error(codes.Unknown, "no")})
			_, _ = l.Apply(l.t.Context(), loadPod(l.t, full), executor.Options{})
		}, v1.PodFailed, 137, unknown},
		"the pod has succeeded": {once, func(l *lab) {
			l.apply(once)
			l.server.Exit("a", 0)
			l.apply(once)
		}, v1.PodSucceeded, 0, "Completed"},
		"the pod waits for a restart": {full, func(l *lab) {
			l.apply(full)
			l.server.Exit("a", 0)
		}, v1.PodSucceeded, 0, "Completed"},
		"its record is lost": {full, func(l *lab) {
			l.apply(full)
			l.server.Lose("a")
		}, v1.PodFailed, 137, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "i:1", "i:2")
			c.before(l)
			l.endAll(c.text, 0)
			l.checkEnded(c.text, c.phase, c.code, c.reason)
		})
	}
}

// TestEndWithFaults checks that after any failed call the next pass does the rest.
func TestEndWithFaults(t *testing.T) {
	for _, method := range []string{"StopContainer", "StopPodSandbox", "ListPodSandbox", "ListContainers"} {
		l := newLab(t, "i:1", "i:2")
		l.server.Behave("a", runtimetest.Behaviour{Graceful: true})
		l.apply(full)
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: status.Error(codes.Unknown, "busy")})
		opts := executor.Options{Options: plan.Options{End: true, GracePeriod: new(int64(1))}, Watched: true}
		if o, err := l.Apply(t.Context(), loadPod(t, full), opts); err == nil && o.Err() == nil {
			t.Errorf("%s did not fail: %s", method, kinds(o.Plan))
		}
		l.endAll(full, 1)
		l.checkEnded(full, v1.PodSucceeded, 0, "Completed")
	}
}

// TestEndsAreShort checks that each container has at least two seconds to stop, and that a pod's grace period of zero
// counts as one second.
func TestEndsAreShort(t *testing.T) {
	l := newLab(t, "i:1", "i:2")
	l.apply(full)
	if o := l.end(full, 0); *o.Plan.Steps[0].GracePeriodSeconds != plan.ShortestStop || l.checkpoint(full).End.GracePeriodSeconds != 1 {
		t.Errorf("%d s, record %+v", *o.Plan.Steps[0].GracePeriodSeconds, l.checkpoint(full).End)
	}
}

// TestEndCutAtEveryStep checks that the next passes finish an end whose pass was cut off at any of its steps, and that
// the end that has begun stays recorded.
func TestEndCutAtEveryStep(t *testing.T) {
	for cut := 1; ; cut++ {
		l := newLab(t, "i:1", "i:2")
		l.server.Behave("a", runtimetest.Behaviour{Graceful: true})
		l.apply(full)
		events, isCut := 0, false
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			opts := executor.Options{Options: plan.Options{End: true, GracePeriod: new(int64(1))}, Watched: true}
			opts.Report = func(executor.Event) {
				if events++; events == cut {
					isCut = true
					cancel()
				}
			}
			_, _ = l.Apply(ctx, loadPod(t, full), opts)
			cancel()
		}
		if c := l.checkpoint(full); c.End == nil || c.End.GracePeriodSeconds != 1 {
			t.Errorf("cut at event %d: record %+v", cut, c.End)
		}
		l.endAll(full, 1)
		l.checkEnded(full, v1.PodSucceeded, 0, "Completed")
		if !isCut {
			return
		}
	}
}
