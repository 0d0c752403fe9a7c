package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
	"github.com/podctl/podctl/runtime/wait"
)

// neverReady is a pod whose container runs and never becomes ready.
const neverReady = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: a, image: 'i:1', readinessProbe: {exec: {command: [x]}}}]
`

// waitLab is a lab with a wait for a pod that never becomes ready.
type waitLab struct {
	*faultLab
	ended chan error
}

func newWaitLab(t *testing.T) *waitLab {
	t.Helper()
	l := &waitLab{faultLab: &faultLab{lab: newLab(t, "i:1", "i:2")}, ended: make(chan error, 1)}
	l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse { return &runtimeapi.ExecSyncResponse{ExitCode: 1} })
	first, d := make(chan struct{}), l.load(neverReady)
	var once sync.Once
	opts := executor.Options{Report: func(ev executor.Event) {
		if ev.Kind == executor.StepDone && ev.Step.Kind == plan.StartContainer {
			once.Do(func() { close(first) })
		}
	}}
	go func() {
		_, err := l.engine.Waiter.Wait(t.Context(), d, wait.Ready, opts)
		l.ended <- err
	}()
	<-first
	return l
}

// outcome returns how the wait ended, once it has.
func (l *waitLab) outcome() error {
	l.t.Helper()
	return <-l.ended
}

// TestDeleteEndsAWait checks that a delete ends an apply that waits. The pod stays deleted, and the error of the apply
// has the reason.
func TestDeleteEndsAWait(t *testing.T) {
	l := newWaitLab(t)
	outcome, err := l.engine.Pods.Delete(t.Context(), model.RefOf(l.load(neverReady).Pod), executor.Options{})
	if err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	superseded := (*syncpod.SupersededError)(nil)
	if err := l.outcome(); !errors.As(err, &superseded) || !strings.Contains(err.Error(), "pod default/web was deleted") {
		t.Errorf("the wait ended with %v", err)
	}
	if made := l.server.Created(); len(made.Sandboxes) != 1 || len(made.Containers) != 1 {
		t.Errorf("the pod was created again: %d sandboxes, %d containers", len(made.Sandboxes), len(made.Containers))
	}
	if left, err := os.ReadDir(filepath.Join(l.layout.Root, "locks")); err != nil || len(left) > 0 {
		t.Errorf("locks are left: %v %v", left, err)
	}
}

// TestAnotherManifestEndsAWait checks that the last applied manifest counts. The wait for the one before ends and
// undoes nothing.
func TestAnotherManifestEndsAWait(t *testing.T) {
	l := newWaitLab(t)
	other := strings.Replace(neverReady, "i:1", "i:2", 1)
	if outcome, err := l.engine.Pods.Apply(t.Context(), l.load(other), executor.Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	superseded := (*syncpod.SupersededError)(nil)
	if err := l.outcome(); !errors.As(err, &superseded) || !strings.Contains(err.Error(), "pod default/web was changed") {
		t.Errorf("the wait ended with %v", err)
	}
	if made := l.server.Created(); len(made.Containers) != 2 {
		t.Errorf("%d containers were created, want one of each manifest", len(made.Containers))
	}
}

// TestOutdatedStoredManifestIsNotApplied checks a command with podctl's own copy of a manifest, such as apply --all,
// that was waiting while the pod was changed or deleted.
func TestOutdatedStoredManifestIsNotApplied(t *testing.T) {
	f := newFaultLab(t, faultShape{before: faultShapes()["sidecar"].after})
	applied, _, err := state.Applied(f.layout)
	if err != nil || len(applied) != 1 {
		t.Fatal(applied, err)
	}
	stored := applied[0].Desired
	check := func(word string) {
		t.Helper()
		before := f.server.Created()
		_, err := f.engine.Pods.Apply(t.Context(), stored, executor.Options{})
		if superseded := (*syncpod.SupersededError)(nil); !errors.As(err, &superseded) || !strings.Contains(err.Error(), word) {
			t.Errorf("the stored copy: %v, want that it was %s", err, word)
		}
		if after := f.server.Created(); len(after.Containers) != len(before.Containers) {
			t.Errorf("%s: %d containers were created", word, len(after.Containers)-len(before.Containers))
		}
	}
	for _, name := range []string{stored.Pod.Name, "pod/" + stored.Pod.Name} {
		if d, err := state.FindPod([]*podspec.Desired{stored}, stored.Pod.Namespace, name); d != stored {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{"other": "podctl get -A", "pods": "without their kind"} {
		if _, err := state.FindPod([]*podspec.Desired{stored}, "default", name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := f.engine.Pods.Apply(t.Context(), stored, executor.Options{}); err != nil {
		t.Errorf("the stored copy, and nothing has changed: %v", err)
	}
	if err := f.converge(faultShapes()["sandbox change"].after); err != nil {
		t.Fatal(err)
	}
	check("changed")
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopPodSandbox", Nth: 1, Fail: codes.Unknown})
	if _, err := f.once(""); err == nil {
		t.Fatal("the deletion did not fail")
	}
	check("not finished")
	checkDeleting(t, f, stored)
	if err := f.converge(""); err != nil {
		t.Fatal(err)
	}
	check("deleted")
}

// TestSetOfAnOlderCopy checks a pass with podctl's own copy of a manifest, as the agent makes them. It does not move a
// pod out of the set that the pod has joined since.
func TestSetOfAnOlderCopy(t *testing.T) {
	f := newFaultLab(t, faultShape{before: faultShapes()["sidecar"].after})
	set := func() *podspec.Desired {
		applied, _, err := state.Applied(f.layout)
		if err != nil || len(applied) != 1 {
			t.Fatal(applied, err)
		}
		return applied[0].Desired
	}
	stored := set()
	again := *stored
	again.Stored, again.Set = false, "default/web"
	for _, d := range []*podspec.Desired{&again, stored} {
		if _, err := f.engine.Pods.Apply(t.Context(), d, executor.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := set().Set; got != "default/web" {
			t.Errorf("the set is %q", got)
		}
	}
	again.Set = ""
	if _, err := f.engine.Pods.Apply(t.Context(), &again, executor.Options{}); err != nil || set().Set != "" {
		t.Errorf("applied without it: %q %v", set().Set, err)
	}
}

// checkDeleting checks that an interrupted deletion shows in the pod, and that a plan of the stored copy has only a
// hold that names the fix.
func checkDeleting(t *testing.T, f *faultLab, stored *podspec.Desired) {
	t.Helper()
	p, err := f.engine.Pods.Plan(t.Context(), stored, plan.Options{})
	if err != nil || p.Complete || len(p.Steps) > 0 ||
		len(p.Holds) != 1 || !strings.Contains(p.Holds[0].Message, "podctl delete default/web") {
		t.Errorf("%v %+v", err, p)
	}
	again := *stored
	again.Stored = false
	if p, err = f.engine.Pods.Plan(t.Context(), &again, plan.Options{}); err != nil || len(p.Steps) == 0 {
		t.Errorf("its manifest, given again: %v %+v", err, p)
	}
	pods, err := f.engine.Lister.List(t.Context(), []*podspec.Desired{stored})
	if err != nil {
		t.Fatal(err)
	}
	left := pods[0].DeletionTimestamp.Sub(f.clock.Now())
	if *pods[0].DeletionGracePeriodSeconds != 2 || left != 2*time.Second {
		t.Errorf("the pod is to be gone in %v of %d seconds", left, *pods[0].DeletionGracePeriodSeconds)
	}
}

// TestDeletionOfOneManifest checks that a deletion of this process's manifest does not delete a pod that another
// process applied in its place. It reports a pod that is already gone.
func TestDeletionOfOneManifest(t *testing.T) {
	f := newFaultLab(t, faultShape{before: neverReady})
	own := f.load(neverReady)
	own.Stored = true
	ref := model.RefOf(own.Pod)
	other := f.load(strings.Replace(neverReady, "i:1", "i:2", 1))
	if outcome, err := f.engine.Pods.Apply(t.Context(), other, executor.Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err)
	}
	superseded := (*syncpod.SupersededError)(nil)
	if _, err := f.engine.Pods.Delete(t.Context(), ref, executor.Options{Only: own}); !errors.As(err, &superseded) || superseded.Deleted {
		t.Errorf("another manifest: %v", err)
	}
	other.Stored = true
	if outcome, err := f.engine.Pods.Delete(t.Context(), ref, executor.Options{Only: other}); err != nil || len(outcome.Plan.Steps) == 0 {
		t.Errorf("its own manifest: %v", err)
	}
	if _, err := f.engine.Pods.Delete(t.Context(), ref, executor.Options{Only: other}); !errors.As(err, &superseded) ||
		!superseded.Deleted {
		t.Errorf("a pod that is gone: %v", err)
	}
}

// TestManyAppliesAtOnce checks that concurrent processes create only one set of containers for a pod.
func TestManyAppliesAtOnce(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			// Each has its own engine, like a process.
			engine := NewEngine(f.engine.Client, f.settings)
			d := f.load(faultShapes()["two containers"].after)
			if outcome, err := engine.Pods.Apply(t.Context(), d, executor.Options{}); err != nil || outcome.Err() != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made := f.server.Created(); len(made.Sandboxes) != 1 || len(made.Containers) != 2 {
		t.Errorf("created %d sandboxes and %d containers", len(made.Sandboxes), len(made.Containers))
	}
}

// TestLockTimeout checks that a process that waits for a lock prints its holder, and that the timeout's error names the
// pod, the holder and the flag.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	f := newFaultLab(t, faultShape{})
	d := f.load(faultShapes()["two containers"].after)
	lock, err := f.layout.Pod(d.Pod.UID).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Unlock() })
	for name, act := range lockers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := Settings{
				Layout: f.layout, Now: f.clock.Now, LockTimeout: 10 * time.Millisecond, Waiting: func(string) {},
			}
			err := act(t.Context(), NewEngine(f.engine.Client, settings), d)
			for _, part := range []string{
				"pod default/web is",
				"in use by pid ",
				", gave up after 10ms (--lock-timeout); wait until it is done",
			} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v lacks %q", err, part)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			var output []string
			settings.LockTimeout, settings.Waiting = 0, func(text string) { output = append(output, text); cancel() }
			err = act(ctx, NewEngine(f.engine.Client, settings), d)
			if err == nil || len(output) != 1 || !strings.HasPrefix(output[0], "pod default/web: waiting for pid ") {
				t.Errorf("while it waited it printed %q; %v", output, err)
			}
		})
	}
}

// lockers are the operations that need the lock of a pod.
func lockers() map[string]func(context.Context, *Engine, *podspec.Desired) error {
	return map[string]func(context.Context, *Engine, *podspec.Desired) error{
		"apply": func(ctx context.Context, e *Engine, d *podspec.Desired) error {
			_, err := e.Pods.Apply(ctx, d, executor.Options{})
			return err
		},
		"delete": func(ctx context.Context, e *Engine, d *podspec.Desired) error {
			_, err := e.Pods.Delete(ctx, model.RefOf(d.Pod), executor.Options{})
			return err
		},
		"wait": func(ctx context.Context, e *Engine, d *podspec.Desired) error {
			_, err := e.Waiter.Wait(ctx, d, wait.Ready, executor.Options{})
			return err
		},
	}
}

// TestWaitOutlivesLostCalls checks that a wait retries a step whose call was lost in a restart of the runtime. A step
// that is never answered ends the wait.
func TestWaitOutlivesLostCalls(t *testing.T) {
	for times, works := range map[int]bool{1: true, wait.UnansweredMax: false} {
		f := newFaultLab(t, faultShape{})
		for range times {
			f.proxy.Disturb(runtimetest.Disturbance{Method: "RunPodSandbox", Fail: codes.Unavailable})
		}
		go f.letTimePass()
		_, err := f.engine.Waiter.Wait(t.Context(), f.load(faultShapes()["two containers"].after), wait.Ready, executor.Options{})
		if blocked := (*wait.BlockedError)(nil); (err == nil) != works ||
			(!works && (!errors.As(err, &blocked) || strings.Count(err.Error(), "pod default/web") != 1)) {
			t.Errorf("%d calls were not answered: %v", times, err)
		}
	}
}

// letTimePass advances the clock until the test is over.
func (f *faultLab) letTimePass() {
	for f.t.Context().Err() == nil {
		f.clock.Advance(time.Second)
		time.Sleep(5 * time.Millisecond)
	}
}
