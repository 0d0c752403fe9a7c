package executor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestLostSandboxIsAStateChange checks that a missing sandbox does not fail the container: another plan creates a
// sandbox.
func TestLostSandboxIsAStateChange(t *testing.T) {
	l := newLab(t, "i:1")
	l.server.Behave("a", runtimetest.Behaviour{After: time.Second})
	first := l.apply(onePod())
	l.clock.Advance(time.Minute)
	p := l.plan(model.PodRef{}, onePod())
	if err := l.client.RemoveSandbox(t.Context(), first.plan.SandboxID); err != nil {
		t.Fatal(err)
	}
	outcome, err := p.run(Options{})
	if changed := (*StateChangedError)(nil); !errors.As(err, &changed) || len(outcome.Failed) > 0 {
		t.Fatal(err, outcome.Failed)
	}
	if l.apply(onePod()); l.count("RunPodSandbox") != 2 {
		t.Errorf("calls %v", l.server.Calls())
	}
}

// TestStartFailures checks that each failure has the kubelet's reason and does not affect other containers.
func TestStartFailures(t *testing.T) {
	failed := errors.New("injected failure")
	onlyA := func(request any) bool {
		r, ok := request.(*runtimeapi.CreateContainerRequest)
		return !ok || r.GetConfig().GetMetadata().GetName() == "a"
	}
	for reason, fault := range map[model.Reason]runtimetest.Fault{
		model.CreateContainerError: {Method: "CreateContainer", Times: 1, Err: failed, Only: onlyA},
		model.RunContainerError:    {Method: "StartContainer", Times: 1, Err: failed},
	} {
		l := newLab(t, "i:1")
		l.server.Fail(fault)
		p := l.plan(model.PodRef{}, pod("  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}]\n"))
		outcome, err := p.run(Options{})
		if err != nil || len(outcome.Failed) != 1 || outcome.Failed[0].Reason != reason {
			t.Errorf("%s: %v, %v", reason, err, outcome.Failed)
			continue
		}
		j, name := l.checkpoint(p.in.Pod), outcome.Failed[0].Step.Container
		if j.StartErrors[name].Reason != reason || len(j.LastRun.Containers) != 1 || j.LastRun.Containers[name] != "" {
			t.Errorf("%s: recorded %+v, %+v", reason, j.StartErrors, j.LastRun)
		}
	}
}

// TestStartIsNotInterrupted checks that a start finishes although the user cancels the pass.
func TestStartIsNotInterrupted(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	x := p.execution(Options{})
	if _, err := x.prepare.runSandbox(t.Context(), p.step(plan.RunSandbox, "")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.start.startContainer(ctx, p.step(plan.StartContainer, "a")); err != nil || x.start.outputs.startedID("a") == "" {
		t.Errorf("%v, started %q", err, x.start.outputs.startedID("a"))
	}
}

// TestLogsOfStarts checks that the runtime does not open a file that replaced the log, and that the log has the link
// for log shippers. A failure to create the link is ignored.
func TestLogsOfStarts(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	logs := l.layout.Pod(p.in.Pod.UID).Logs("default", "web")
	log, err := logs.File("a", p.step(plan.StartContainer, "a").Attempt)
	if err = errors.Join(err, logs.Make("a")); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err = os.Symlink(elsewhere, log); err != nil {
		t.Fatal(err)
	}
	// The link is created again during the creation of the container.
	again := sync.OnceFunc(func() {
		if linkErr := os.Symlink(elsewhere, log); linkErr != nil {
			t.Errorf("link to the log while the container is created: %v", linkErr)
		}
	})
	l.server.Fail(runtimetest.Fault{Method: "CreateContainer", Times: 1, Only: func(any) bool { again(); return false }})
	outcome, err := p.run(Options{})
	if err != nil || outcome.Err() != nil || len(l.warnings()) > 0 {
		t.Fatal(err, outcome.Err(), l.warnings())
	}
	if _, err = os.Stat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("the runtime's log is missing: %v", err)
	}
	links, err := os.ReadDir(l.layout.ContainerLogRoot)
	if err != nil || len(links) != 1 {
		t.Fatal(links, err)
	}
	if target, _ := os.Readlink(filepath.Join(l.layout.ContainerLogRoot, links[0].Name())); target != log {
		t.Errorf("the link leads to %s, want %s", target, log)
	}
	l.server.Exit("a", 1)
	if err = errors.Join(os.RemoveAll(l.layout.ContainerLogRoot), os.WriteFile(l.layout.ContainerLogRoot, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	outcome, err = l.plan(model.PodRef{}, onePod()).run(Options{})
	if warned := l.warnings(); err != nil || outcome.Err() != nil || len(warned) != 1 ||
		!strings.Contains(warned[0], "linking the log of container a") {
		t.Errorf("%v, %v, warnings %q", err, outcome.Err(), warned)
	}
}

// hookPod has a container with a postStart hook, which fails in the lab by default.
func hookPod(grace string) string {
	text := pod("  containers:\n  - {name: a, image: 'i:1', " +
		"lifecycle: {postStart: {exec: {command: [begin]}}, preStop: {exec: {command: [end]}}}}\n")
	return strings.Replace(text, "Seconds: 1\n", "Seconds: "+grace+"\n", 1)
}

// TestFailedPostStart checks that the container is stopped like any other, with its preStop hook if there is time,
// and does not count as started.
func TestFailedPostStart(t *testing.T) {
	for grace, want := range map[string][]string{"1": {"[begin]", "[end]"}, "0": {"[begin]"}} {
		l := newLab(t, "i:1")
		var ran []string
		l.server.OnExec(func(_ string, command []string) *runtimeapi.ExecSyncResponse {
			ran = append(ran, "["+command[0]+"]")
			return &runtimeapi.ExecSyncResponse{ExitCode: int32(map[string]int{"begin": 7}[command[0]])}
		})
		outcome, err := l.plan(model.PodRef{}, hookPod(grace)).run(Options{})
		if err != nil || len(outcome.Failed) != 1 || outcome.Failed[0].Reason != "PostStartHookError" ||
			!outcome.Failed[0].Retryable || !outcome.Failed[0].Stopped ||
			!strings.Contains(outcome.Err().Error(), "begin exited 7") {
			t.Fatal(err, outcome.Failed)
		}
		j := l.checkpoint(outcome.Plan.Pod)
		if !slices.Equal(ran, want) || l.count("StopContainer a") != 1 || len(j.LastRun.Containers) > 0 {
			t.Errorf("grace %s: hooks %v, %d stops, LastRun %v", grace, ran, l.count("StopContainer a"), j.LastRun.Containers)
		}
		if kept := j.StartErrors["a"]; kept.Reason != model.PostStartHookError ||
			!strings.HasSuffix(kept.Message, "failed - error: command 'begin' exited with 7") {
			t.Errorf("grace %s: recorded %+v", grace, kept)
		}
		isFailedHook := func(e string) bool { return strings.HasPrefix(e, "Warning FailedPostStartHook a") }
		if !slices.ContainsFunc(l.history(outcome.Plan.Pod), isFailedHook) {
			t.Errorf("events %q", l.history(outcome.Plan.Pod))
		}
	}
}

// TestCanceledPostStart checks that an agent that exits leaves the container running. If the caller cancels the pass
// or replaces it by another one, the container is stopped, because it would continue as if its hook had succeeded.
func TestCanceledPostStart(t *testing.T) {
	for name, c := range map[string]struct {
		watched bool
		cause   error
		stops   int
	}{
		"an agent ends": {true, nil, 0}, "a pass is outdated": {true, ErrOutdated, 1}, "a user gives up": {false, nil, 1},
	} {
		l := newLab(t, "i:1")
		ctx, cancel := context.WithCancelCause(t.Context())
		// The hook lasts until the caller gives up.
		l.server.Fail(runtimetest.Fault{Method: "ExecSync", Times: 1, Hangs: true, Only: func(request any) bool {
			begins := request.(*runtimeapi.ExecSyncRequest).GetCmd()[0] == "begin"
			if begins {
				cancel(c.cause)
			}
			return begins
		}})
		p := l.plan(model.PodRef{}, hookPod("1"))
		x := p.execution(Options{Watched: c.watched})
		if _, err := x.prepare.runSandbox(t.Context(), p.step(plan.RunSandbox, "")); err != nil {
			t.Fatal(err)
		}
		_, err := x.start.startContainer(ctx, p.step(plan.StartContainer, "a"))
		if stops := l.count("StopContainer a"); !errors.Is(err, context.Canceled) || stops != c.stops {
			t.Errorf("%s: %v, and %d stops", name, err, stops)
		}
		if _, failed := x.checkpoint.record.StartErrors["a"]; failed != (c.stops > 0) {
			t.Errorf("%s: failures %v", name, x.checkpoint.record.StartErrors)
		}
	}
}

// TestUnstartedReplacements checks that an early replacement is removed if its start is skipped, and that a
// failed removal is reported.
func TestUnstartedReplacements(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	x := p.execution(Options{})
	if _, err := x.prepare.runSandbox(t.Context(), p.step(plan.RunSandbox, "")); err != nil {
		t.Fatal(err)
	}
	s := p.step(plan.StartContainer, "a")
	x.start.createEarly(t.Context(), s)
	x.start.dropCreated(t.Context(), s)
	x.start.dropCreated(t.Context(), s)
	if l.count("CreateContainer a") != 1 || l.count("RemoveContainer a") != 1 || len(l.warnings()) > 0 {
		t.Errorf("calls %v, warnings %q", l.server.Calls(), l.warnings())
	}
	x.start.createEarly(t.Context(), s)
	l.server.Fail(runtimetest.Fault{Method: "RemoveContainer", Times: 99, Err: status.Error(codes.Internal, "injected failure")})
	x.start.dropCreated(t.Context(), s)
	if warned := l.warnings(); len(warned) != 1 ||
		!strings.Contains(warned[0], "container a: the container created to replace it could not be removed") {
		t.Errorf("warnings %q", warned)
	}
}

// TestReplacementsOfAnInterruptedPass checks that a replacement that was created but not started before podctl was
// killed leaves no gap in the restart count.
func TestReplacementsOfAnInterruptedPass(t *testing.T) {
	l := newLab(t, "i:1")
	l.apply(onePod())
	edited := strings.Replace(onePod(), "image: 'i:1'", "image: 'i:1', args: [again]", 1)
	p := l.plan(model.PodRef{}, edited)
	x := p.execution(Options{})
	if err := x.checkpoint.begin(); err != nil {
		t.Fatal(err)
	}
	x.start.createEarly(t.Context(), p.step(plan.StartContainer, "a"))
	after := l.apply(edited)
	status := podstatus.Of(after.in.State())
	if n := status.ContainerStatuses[0].RestartCount; n != 1 || status.ContainerStatuses[0].State.Running == nil {
		t.Errorf("after one restart the restart count is %d: %+v", n, status.ContainerStatuses[0].State)
	}
}

// TestFailedEarlyCreation checks that the failure is reported when the replacement would start.
func TestFailedEarlyCreation(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	x := p.execution(Options{})
	if _, err := x.prepare.runSandbox(t.Context(), p.step(plan.RunSandbox, "")); err != nil {
		t.Fatal(err)
	}
	l.server.Fail(runtimetest.Fault{Method: "CreateContainer", Times: 1, Err: errors.New("injected failure")})
	s := p.step(plan.StartContainer, "a")
	x.start.createEarly(t.Context(), s)
	if _, err := x.start.startContainer(t.Context(), s); model.ReasonOf(err, "") != "CreateContainerError" ||
		l.count("CreateContainer") > 0 {
		t.Errorf("%v after %v", err, l.server.Calls())
	}
}

// TestContainersThatLeftTheManifest checks that a step for an unknown container fails before it does anything.
func TestContainersThatLeftTheManifest(t *testing.T) {
	l := newLab(t, "i:1")
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	s := &plan.Step{ID: "start-z", Kind: plan.StartContainer, Container: "z"}
	_, startErr := x.start.startContainer(t.Context(), s)
	for name, err := range map[string]error{
		"start":  startErr,
		"check":  x.start.checkContainer(s),
		"update": x.start.updateContainer(t.Context(), s),
	} {
		if err == nil || !strings.Contains(err.Error(), "container z is not in the manifest") {
			t.Errorf("%s: %v", name, err)
		}
	}
	x.start.createEarly(t.Context(), s)
	if made, ok := x.start.outputs.takeCreated(s.ID); !ok || made.err == nil {
		t.Errorf("creation %+v", made)
	}
}

// TestDebugContainersAreAnnotated checks that the definition is stored on the container, because no manifest has
// it. The pass records nothing, because the manifest stays the same.
func TestDebugContainersAreAnnotated(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	c := &v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debugger", Image: "i:1"}}
	if outcome, err := p.run(Options{Debug: c}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	var got v1.EphemeralContainer
	made := l.server.Created().Containers[0]
	if err := json.Unmarshal([]byte(made.GetAnnotations()[criconfig.AnnotationDebug]), &got); err != nil || got.Name != "debugger" {
		t.Errorf("annotations %v, %v", made.GetAnnotations(), err)
	}
	if j := l.checkpoint(p.in.Pod); j.Applied != nil {
		t.Error("the manifest with the debug container was recorded")
	}
}

// TestStatusWhileAHookRuns checks that the status of a container is the one from before the start until its postStart
// hook has finished, in every process. A container whose hook fails never appears as started.
func TestStatusWhileAHookRuns(t *testing.T) {
	l := newLab(t, "i:1")
	text := pod("  containers: [{name: a, image: 'i:1', lifecycle: {postStart: {sleep: {seconds: 3600}}}}]\n")
	text = strings.Replace(text, "Seconds: 1\n", "Seconds: 4000\n", 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	p, done := l.plan(model.PodRef{}, text), make(chan error)
	go func() {
		_, err := l.executor.Run(ctx, p.in, p.plan, p.snapshot, Options{})
		done <- err
	}()
	for l.count("StartContainer") == 0 {
		time.Sleep(time.Millisecond)
	}
	other := l.plan(model.PodRef{}, text)
	status := podstatus.Of(other.in.State())
	if c := status.ContainerStatuses[0]; status.Phase != v1.PodPending || c.State.Waiting == nil ||
		c.State.Waiting.Reason != "ContainerCreating" || c.Ready || *c.Started {
		t.Errorf("status while the hook runs: phase %s, container %+v", status.Phase, c)
	}
	if waits := other.plan.WaitingFor; !slices.Equal(waits, []string{"the postStart hook of a to finish"}) ||
		other.plan.Complete || len(other.plan.Steps) > 0 {
		t.Errorf("a plan of another process has WaitingFor %q: %+v", waits, other.plan.Steps)
	}
	cancel(ErrOutdated)
	if err := <-done; !errors.Is(err, ErrOutdated) {
		t.Error(err)
	}
	after := l.plan(model.PodRef{}, text).in.Observed.Containers[0]
	if after.Starting || after.State != model.Exited {
		t.Errorf("status after the hook: %+v", after)
	}
}
