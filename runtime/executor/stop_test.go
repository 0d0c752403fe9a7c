package executor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
)

// endingPod has a container with a preStop hook and the given grace period in seconds.
func endingPod(grace string) string {
	return strings.Replace(
		pod("  containers: [{name: a, image: 'i:1', lifecycle: {preStop: {exec: {command: [end]}}}}]\n"),
		"Seconds: 1\n", "Seconds: "+grace+"\n", 1)
}

// stopOf returns the execution of a plan that stops the container of a pod, and its step.
func stopOf(t *testing.T, l *lab, text string) (*execution, *plan.Step) {
	t.Helper()
	p := l.plan(l.apply(text).in.Pod, "")
	return p.execution(Options{}), p.step(plan.StopContainer, "")
}

// TestHooksRunBeforeTheSignal checks that the preStop hook runs before the signal, and that its duration reduces the
// grace period, but not below the minimum.
func TestHooksRunBeforeTheSignal(t *testing.T) {
	for took, want := range map[time.Duration]int64{0: 10, 4 * time.Second: 6, time.Minute: plan.ShortestStop} {
		l := newLab(t, "i:1")
		x, s := stopOf(t, l, endingPod("10"))
		l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse {
			l.clock.Advance(took)
			return &runtimeapi.ExecSyncResponse{}
		})
		grace := int64(-1)
		l.server.Fail(runtimetest.Fault{Method: "StopContainer", Times: 1, Only: func(request any) bool {
			grace = request.(*runtimeapi.StopContainerRequest).GetTimeout()
			return false
		}})
		summary, err := x.stop.stopContainer(t.Context(), s)
		if err != nil || grace != want || !strings.HasPrefix(summary, "preStop ") || !strings.HasSuffix(summary, "exited 143 (SIGTERM)") {
			t.Errorf("after a hook of %v: %d seconds, want %d: %q, %v", took, grace, want, summary, err)
		}
		calls := l.server.Calls()
		hook, stop := slices.Index(calls, "ExecSync a [end]"), slices.Index(calls, "StopContainer a 0")
		if hook < 0 || stop < hook {
			t.Errorf("calls %v", calls)
		}
	}
}

// TestFailedHooks checks that a failed preStop hook is reported and recorded, and does not prevent the stop.
func TestFailedHooks(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(l.apply(endingPod("10")).in.Pod, "")
	l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse { return &runtimeapi.ExecSyncResponse{ExitCode: 3} })
	if outcome, err := p.run(Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	if warned := l.warnings(); len(warned) != 1 || warned[0] != "container a: preStop hook failed: end exited 3" {
		t.Errorf("warnings %q", warned)
	}
	if !slices.Contains(l.history(p.in.Pod), "Warning FailedPreStopHook a: PreStopHook failed: end exited 3") {
		t.Errorf("events %q", l.history(p.in.Pod))
	}
}

// TestHooksLongerThanTheGracePeriod checks that the timeout of the call is not reported as its failure.
func TestHooksLongerThanTheGracePeriod(t *testing.T) {
	l := newLab(t, "i:1")
	x, s := stopOf(t, l, endingPod("2"))
	l.server.Fail(runtimetest.Fault{Method: "ExecSync", Times: 1, Hangs: true})
	if _, err := x.stop.stopContainer(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if warned := l.warnings(); len(warned) != 1 || warned[0] != "container a: preStop hook not completed in the grace period of 2s" {
		t.Errorf("warnings %q", warned)
	}
}

// TestHooksRunUntilTheirContainerEnds checks that a hook is not interrupted at the end of the grace period, but with its
// container, and that the stop leaves no hook behind.
func TestHooksRunUntilTheirContainerEnds(t *testing.T) {
	l := newLab(t, "i:1")
	x, s := stopOf(t, l, endingPod("1"))
	var stopped atomic.Bool
	l.server.Fail(runtimetest.Fault{Method: "StopContainer", Times: 1, Only: func(any) bool {
		stopped.Store(true)
		return false
	}})
	interrupted := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		interrupted <- !stopped.Load()
	}))
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.stop.stop(t.Context(), &stopping{
		step: s, id: s.ContainerID, grace: 1, ref: podspec.ContainerRef{Container: &v1.Container{Name: "a"}},
		preStop: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Host: host, Port: intstr.Parse(port)}},
	})
	if err != nil || !stopped.Load() {
		t.Fatalf("stopped: %t, %v", stopped.Load(), err)
	}
	if <-interrupted {
		t.Error("the hook was interrupted before its container was stopped")
	}
}

// TestSpentGracePeriodWaitsForNoStop checks that a container whose hook has used the whole grace period is stopped at
// once, although the containers that must end before it still run.
func TestSpentGracePeriodWaitsForNoStop(t *testing.T) {
	l := newLab(t, "i:1")
	x, s := stopOf(t, l, endingPod("10"))
	l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse {
		l.clock.Advance(10 * time.Second)
		return &runtimeapi.ExecSyncResponse{}
	})
	step := stopWaits(*s, "before")
	x.schedule.gates["before"] = newGate()
	x.stop.report.notify = func(e Event) {
		if strings.HasPrefix(e.Detail, "waits") {
			t.Errorf("it %s", e.Detail)
		}
	}
	if _, err := x.stop.stopContainer(t.Context(), &step); err != nil {
		t.Fatal(err)
	}
}

// TestZeroGracePeriodRunsNoHook checks that a container without a grace period is stopped without its hook.
func TestZeroGracePeriodRunsNoHook(t *testing.T) {
	l := newLab(t, "i:1")
	x, s := stopOf(t, l, endingPod("10"))
	s.GracePeriodSeconds = new(int64)
	if summary, err := x.stop.stopContainer(t.Context(), s); err != nil || l.count("ExecSync") > 0 ||
		l.count("StopContainer") != 1 || len(l.warnings()) > 0 {
		t.Errorf("%q, %v after %v, warnings %q", summary, err, l.server.Calls(), l.warnings())
	}
}

// TestInterruptedHooks checks that a canceled hook has not failed, and that the container gets no signal.
func TestInterruptedHooks(t *testing.T) {
	l := newLab(t, "i:1")
	x, s := stopOf(t, l, endingPod("10"))
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("interrupted")
	l.server.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse {
		cancel(ended)
		return &runtimeapi.ExecSyncResponse{ExitCode: 1}
	})
	if _, err := x.stop.stopContainer(ctx, s); !errors.Is(err, ended) || l.count("StopContainer") > 0 || len(l.warnings()) > 0 {
		t.Errorf("%v after %v, warnings %q", err, l.server.Calls(), l.warnings())
	}
	if last := l.events[len(l.events)-1]; last.Detail != "runs its preStop hook" {
		t.Errorf("last event %q", last.Detail)
	}
}

// TestStopsAreConfirmedByState checks that only the state of the container counts, whatever the result of the call is.
// A successful call does not count while the runtime reports the container as running.
func TestStopsAreConfirmedByState(t *testing.T) {
	failed := errors.New("injected failure")
	stop := func(f runtimetest.Fault, prepare func(*lab)) (string, error) {
		l := newLab(t, "i:1")
		x, s := stopOf(t, l, onePod())
		f.Method, f.Times = "StopContainer", 1
		if f.Err != nil {
			l.server.Fail(f)
		}
		prepare(l)
		return x.stop.stopContainer(t.Context(), s)
	}
	nothing := func(*lab) {}
	if summary, err := stop(runtimetest.Fault{Err: failed, Afterwards: true}, nothing); err != nil || summary != "exited 143 (SIGTERM)" {
		t.Errorf("stop with a lost answer: %q, %v", summary, err)
	}
	if summary, err := stop(runtimetest.Fault{}, func(l *lab) { l.server.Lose("a") }); err != nil || summary != "" {
		t.Errorf("stop with a lost record: %q, %v", summary, err)
	}
	if _, err := stop(runtimetest.Fault{Err: failed}, nothing); model.ReasonOf(err, "") != "KillContainerError" ||
		!strings.Contains(err.Error(), failed.Error()) {
		t.Errorf("container that keeps running: %v", err)
	}
	if _, err := stop(runtimetest.Fault{Err: failed}, func(l *lab) { l.server.Forget("a") }); err == nil ||
		!strings.Contains(err.Error(), failed.Error()) {
		t.Errorf("stop without a step: %v", err)
	}
}

// TestKilledAfterGracePeriod checks that a container counts as killed only after its grace period; 137 alone is not
// enough.
func TestKilledAfterGracePeriod(t *testing.T) {
	exited := func(code int32) *runtimeapi.ContainerStatus { return &runtimeapi.ContainerStatus{ExitCode: code} }
	for name, c := range map[string]struct {
		status *runtimeapi.ContainerStatus
		took   time.Duration
		want   string
	}{
		"record removed":      {nil, time.Minute, ""},
		"by itself":           {exited(0), time.Second, "exited 0"},
		"by its own 137":      {exited(137), time.Second, "exited 137 (SIGKILL)"},
		"by the kill":         {exited(137), 10 * time.Second, "killed after 10s"},
		"late, and by itself": {exited(1), time.Minute, "exited 1"},
	} {
		if got := ending(c.status, c.took, 10); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOrderOfStops checks that a sidecar waits for the stops before it after its hook, at most for its grace period. It
// waits until then for a failed stop, because that container may still run.
func TestOrderOfStops(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		failed bool
		waited bool
		want   time.Duration
	}{
		"the stop before has ended":   {0, false, false, 0},
		"ends in the grace period":    {3 * time.Second, false, true, 3 * time.Second},
		"ends after the grace period": {time.Minute, false, true, 10 * time.Second},
		"the stop before fails":       {time.Second, true, true, 10 * time.Second},
		"the stop before has failed":  {0, true, true, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			report := &reporter{plan: &plan.Plan{}, now: time.Now}
			steps := []plan.Step{{ID: "app"}, stopWaits(plan.Step{ID: "side"}, "app")}
			x := &stopper{subject: &subject{Executor: &Executor{now: time.Now}, plan: &plan.Plan{Steps: steps}, report: report}}
			x.schedule = newScheduler(x.plan, report)
			end := func() {
				if c.failed {
					x.schedule.blocks["app"] = true
				}
				x.schedule.gates["app"].end()
			}
			began := time.Now()
			if c.after == 0 {
				end()
			} else {
				timer := time.AfterFunc(c.after, end)
				defer timer.Stop()
			}
			waited := x.awaitStops(t.Context(), &stopping{step: &steps[1], grace: 10, began: began})
			if took := time.Since(began); waited != c.waited || took != c.want {
				t.Errorf("%s: waited %t for %v, want %t for %v", name, waited, took, c.waited, c.want)
			}
		})
	}
}

// TestExitIsWatchedOnlyIfNeeded checks that processes are watched only if a step waits for their exit.
func TestExitIsWatchedOnlyIfNeeded(t *testing.T) {
	steps := []plan.Step{
		{ID: "stop-a"},
		{ID: "stop-b"},
		waitsForExit(plan.Step{ID: "start-a"}, "stop-a"),
		waits(plan.Step{ID: "start-b"}, "stop-b"),
	}
	x := &stopper{subject: &subject{plan: &plan.Plan{Steps: steps}}}
	if !x.exitAwaited(&steps[0]) || x.exitAwaited(&steps[1]) || x.exitAwaited(nil) {
		t.Error("exitAwaited must be true only for stop-a: start-b waits for the end of stop-b")
	}
}

// processes simulates cgroups with or without processes, or without any information.
type processes struct {
	cgroup.Groups
	left, seen bool
}

func (p processes) Occupants([]string, string, int) (cgroup.Processes, bool) { return p, p.seen }

func (p processes) Left() bool { return p.left }
func (processes) Close()       {}

// TestExitOpensTheGate checks that a step that waits for an exit continues when no process is left, although the
// runtime has not answered. Without that information it waits.
func TestExitOpensTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		of   processes
		lose bool
		want bool
	}{
		"none is left": {processes{seen: true}, false, true}, "one is left": {processes{seen: true, left: true}, false, false},
		"they cannot be listed": {processes{}, false, false}, "the container is unknown": {processes{seen: true}, true, false},
	} {
		l := newLab(t, "i:1")
		x, s := stopOf(t, l, onePod())
		id := s.ID
		x.plan.Steps = append(x.plan.Steps, waitsForExit(plan.Step{ID: "start"}, id))
		s = &x.plan.Steps[slices.IndexFunc(x.plan.Steps, func(other plan.Step) bool { return other.ID == id })]
		x.stop.cgroups = c.of
		if c.lose {
			l.server.Lose("a")
		}
		patience := time.Minute
		if c.of.left {
			patience = 50 * time.Millisecond // The exit is never seen.
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		x.stop.watchExit(ctx, &stopping{step: s, id: s.ContainerID})
		cancel()
		exited := false
		select {
		case <-x.schedule.gates[id].exited:
			exited = true
		default:
		}
		if exited != c.want {
			t.Errorf("%s: exit gate open %t", name, exited)
		}
	}
}

// TestHandlersOfHooks checks that a hook comes from the manifest, and for a container that left it from the container
// itself. A step without a hook has none.
func TestHandlersOfHooks(t *testing.T) {
	exec := func(word string) *v1.LifecycleHandler {
		return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{word}}}
	}
	manifest := &v1.Pod{
		Spec: v1.PodSpec{
			Containers: []v1.Container{
				{Name: "a", Lifecycle: &v1.Lifecycle{PreStop: exec("of the manifest")}},
				{Name: "b"},
			},
		},
	}
	status := &runtimeapi.ContainerStatus{Id: "id", Annotations: map[string]string{
		criconfig.AnnotationPreStopHandler: `{"exec":{"command":["of the container"]}}`,
		criconfig.AnnotationContainerPorts: `[{"containerPort":80}]`,
	}}
	x := &hooks{
		subject: &subject{
			desired:  &podspec.Desired{Pod: manifest},
			snapshot: &snapshot.Pod{Containers: []snapshot.Container{{Status: status}}},
		},
	}
	for name, c := range map[string]struct {
		step plan.Step
		want string
	}{
		"no hook":                         {plan.Step{Container: "a"}, ""},
		"of a manifest":                   {plan.Step{Container: "a", ContainerID: "id", PreStop: "exec"}, "of the manifest"},
		"the manifest lost the hook":      {plan.Step{Container: "b", ContainerID: "id", PreStop: "exec"}, ""},
		"the container left the manifest": {plan.Step{Container: "c", ContainerID: "id", PreStop: "exec"}, "of the container"},
		"the container is gone":           {plan.Step{Container: "c", ContainerID: "other", PreStop: "exec"}, ""},
	} {
		handler, ref := x.preStopHandler(&c.step)
		got := ""
		if handler != nil {
			got = handler.Exec.Command[0]
		}
		if got != c.want || (c.want != "" && ref.Name != c.step.Container) {
			t.Errorf("%s: %q of %q, want %q", name, got, ref.Name, c.want)
		}
		if name == "the container left the manifest" && (len(ref.Ports) != 1 || ref.Ports[0].ContainerPort != 80) {
			t.Errorf("ports %v", ref.Ports)
		}
	}
	// On deletion the hooks of the manifest applied last count.
	x.desired, x.applied = nil, &podspec.Desired{Pod: manifest}
	if handler, _ := x.preStopHandler(&plan.Step{Container: "a", PreStop: "exec"}); handler == nil {
		t.Error("the hook of the manifest applied last is not found on deletion")
	}
}

// TestKindsOfHooks checks every kind of hook, and that a hook without an action is an error.
func TestKindsOfHooks(t *testing.T) {
	l := newLab(t, "i:1")
	x := l.plan(model.PodRef{}, onePod()).execution(Options{}).stop.hooks
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("interrupted")
	cancel(ended)
	if err := x.run(ctx, &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3600}}, podspec.ContainerRef{}, ""); !errors.Is(err, ended) {
		t.Errorf("sleep hook: %v", err)
	}
	if err := x.run(t.Context(), &v1.LifecycleHandler{Sleep: &v1.SleepAction{}}, podspec.ContainerRef{}, ""); err != nil {
		t.Errorf("sleep hook of zero seconds: %v", err)
	}
	if err := x.run(t.Context(), &v1.LifecycleHandler{}, podspec.ContainerRef{}, ""); err == nil ||
		!strings.Contains(err.Error(), "exec, httpGet or sleep") {
		t.Errorf("empty hook: %v", err)
	}
}

// TestAddressesOfHooks checks that a hook uses the address of its container's sandbox, whatever sandbox the plan
// creates or keeps, and no address if that sandbox has none.
func TestAddressesOfHooks(t *testing.T) {
	pod, node := model.Sandbox{ID: "s", State: model.SandboxReady, IPs: []string{"10.0.0.2", "fd00::2"}}, []string{"192.0.2.7"}
	dead, lost, host := pod, pod, pod
	dead.State, lost.IPs = model.SandboxNotReady, nil
	host.IPs, host.HostNetwork = nil, true
	for name, c := range map[string]struct {
		sandbox model.Sandbox
		id      string
		want    string
	}{
		"the sandbox runs":           {pod, "old", "10.0.0.2"},
		"sandbox exited":             {dead, "old", ""},
		"sandbox without an address": {lost, "old", ""},
		"in the node's network":      {host, "old", "192.0.2.7"},
		"sandbox removed":            {model.Sandbox{ID: "other", State: model.SandboxReady, IPs: []string{"10.0.0.9"}}, "old", ""},
		"started in this pass":       {pod, "new", "10.0.0.5"},
		"that sandbox has no name":   {model.Sandbox{}, "new", "10.0.0.5"},
	} {
		observed := &model.Observed{
			Machine:    model.Machine{NodeIPs: node},
			Sandboxes:  []model.Sandbox{c.sandbox},
			Containers: []model.Container{{ID: "old", SandboxID: "s"}},
		}
		x := &hooks{&subject{observed: observed, outputs: newOutputs(&plan.Plan{}, observed)}}
		x.outputs.setSandbox(sandboxOutput{Sandbox: model.Sandbox{ID: "n", State: model.SandboxReady, IPs: []string{"10.0.0.5"}}})
		if to := x.target(podspec.ContainerRef{}, c.id); to.PodIP != c.want || to.ContainerID != c.id {
			t.Errorf("%s: request sent to %q, want %q", name, to.PodIP, c.want)
		}
	}
}

// TestHooksOfDeletedPods checks that hooks are sent to a pod that is deleted, although the plan creates no sandbox.
func TestHooksOfDeletedPods(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.apply(pod("  containers: [{name: a, image: 'i:1', lifecycle: {preStop: {httpGet: {port: 8080}}}}]\n"))
	ip := p.in.Observed.Sandboxes[0].IPs[0]
	gone := l.plan(model.RefOf(p.in.Desired.Pod), "")
	s := gone.step(plan.StopContainer, "a")
	x := gone.execution(Options{}).stop.hooks
	handler, ref := x.preStopHandler(s)
	if to := x.target(ref, s.ContainerID); handler == nil || ip == "" || to.PodIP != ip {
		t.Errorf("hook of %s sent to %q, want %q", s.ContainerID, to.PodIP, ip)
	}
}
