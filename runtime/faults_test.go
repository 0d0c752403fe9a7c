package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// faultShape is a pod with its state before, and the change during which a call fails.
type faultShape struct {
	// before is applied and settled without failures; empty means that there is no pod yet.
	before string
	// after is applied; empty means that the pod is deleted.
	after string
	// behave has the behaviour of containers.
	behave map[string][]runtimetest.Behaviour
}

// faultShapes returns the shapes to test with faults.
func faultShapes() map[string]faultShape {
	shapes := map[string]faultShape{}
	for name, s := range runtimetest.Shapes() {
		shapes[name] = faultShape{before: s.Before, after: s.After, behave: s.Behave}
	}
	return shapes
}

// faultLab is a lab whose calls go through a proxy.
type faultLab struct {
	*lab
	proxy *runtimetest.Proxy
	shape faultShape
	// timeout limits a single operation.
	timeout time.Duration
}

func newFaultLab(t *testing.T, shape faultShape) *faultLab {
	t.Helper()
	l := newLab(t, "i:1", "i:2")
	socket := l.engine.Client.Endpoint.Socket()
	front := filepath.Join(filepath.Dir(socket), "front.sock")
	proxy, err := runtimetest.StartProxy(t.Context(), front, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	client, err := cri.Connect(cri.Endpoint{Address: "unix://" + front, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l.restart(client, func(*Settings) {})
	f := &faultLab{lab: l, proxy: proxy, shape: shape, timeout: time.Minute}
	for name, runs := range shape.behave {
		l.server.Behave(name, runs...)
	}
	if shape.before != "" {
		if err := f.converge(shape.before); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Reset()
	return f
}

func (f *faultLab) load(text string) *podspec.Desired {
	f.t.Helper()
	m, err := load.Load(f.t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		f.t.Fatalf("%v %v\n%s", err, m.Err(), text)
	}
	return m.Pods[0]
}

// once makes one pass, or the deletion.
func (f *faultLab) once(text string) (*plan.Plan, error) {
	ctx, cancel := context.WithTimeoutCause(f.t.Context(), f.timeout, errTimeout)
	defer cancel()
	if text != "" {
		return f.passIn(ctx, f.load(text))
	}
	outcome, err := f.engine.Pods.Delete(ctx, model.RefOf(f.load(f.shape.before).Pod), executor.Options{})
	if err != nil {
		return nil, err
	}
	return outcome.Plan, outcome.Err()
}

// impatient sets short timeouts for calls, and one for the pass, because some calls have no timeout of their own: a
// hook may run for any time, and a pull for an hour.
func (f *faultLab) impatient() {
	f.engine.Client.Timeout = 200 * time.Millisecond
	f.timeout = 2 * time.Second
}

func (f *faultLab) patient() { f.engine.Client.Timeout, f.timeout = time.Minute, time.Minute }

// end advances the time until nothing changes by itself any more.
func (f *faultLab) end(text string) error {
	if err := f.converge(text); err != nil {
		return err
	}
	f.clock.Advance(time.Minute)
	return f.converge(text)
}

// converge continues until nothing is left to do.
func (f *faultLab) converge(text string) error {
	var last error
	for range 40 {
		p, err := f.once(text)
		switch {
		case err != nil:
			last = err
			f.clock.Advance(time.Second)
		case len(p.Steps) == 0 && (p.Complete || text == ""):
			return nil
		case len(p.Steps) == 0:
			f.clock.Advance((&trial{lab: f.lab}).patience(p))
		}
	}
	return fmt.Errorf("it does not come to an end: %w", errors.Join(last, errors.New("forty passes")))
}

// state describes the final state: every record by name and state, and the sandboxes. It leaves out attempts, because a
// lost one is skipped.
func (f *faultLab) state() string {
	f.t.Helper()
	text := f.shape.after
	if text == "" {
		text = f.shape.before
	}
	d := f.load(text)
	s, err := f.engine.Observer.Observe(f.t.Context(), model.RefOf(d.Pod), d)
	if err != nil {
		f.t.Fatal(err)
	}
	var lines []string
	o := s.Observed(s.Pod, nil)
	for i := range o.Sandboxes {
		lines = append(lines, "sandbox "+string(o.Sandboxes[i].State))
	}
	for i := range o.Containers {
		if c := &o.Containers[i]; c.State != model.Exited || c.ExitCode == 0 {
			lines = append(lines, c.Name+" "+string(c.State)+" "+c.Image)
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// everyFault returns the possible faults of a call.
func everyFault() map[string]runtimetest.Disturbance {
	return map[string]runtimetest.Disturbance{
		"unavailable": {Fail: codes.Unavailable}, "deadline": {Fail: codes.DeadlineExceeded}, "internal": {Fail: codes.Internal},
		"exhausted": {Fail: codes.ResourceExhausted}, "answer lost": {Lose: codes.Unavailable}, "answer broken": {Lose: codes.Internal},
		"not begun": {Delay: time.Hour}, "not answered": {Hang: true},
	}
}

// hangs reports whether a call is never answered.
func hangs(d runtimetest.Disturbance) bool { return d.Hang || d.Delay > 0 }

// faultsOf returns the faults to test with the n-th call of a method in a shape. The shapes that together have all
// kinds of calls get every fault. The others get one fault for a read, and all but the slow ones for a write. A pass
// repeats the reads of the pass before it, so only the first ones are tested.
func faultsOf(shape string, writes bool, n int) map[string]runtimetest.Disturbance {
	faults := everyFault()
	all := slices.Contains([]string{"hooks", "a pull", "replace", "resize", "delete"}, shape) && (writes || n <= 4)
	maps.DeleteFunc(faults, func(name string, d runtimetest.Disturbance) bool {
		return !all && (hangs(d) || (!writes && name != "unavailable"))
	})
	return faults
}

// TestFaultsAtEveryCall tries every fault of every call. The error names the operation and its object, nothing is
// duplicated, and the next passes reach the same state as without the fault.
func TestFaultsAtEveryCall(t *testing.T) {
	shapes := faultShapes()
	if testing.Short() {
		// With the slow race detector, only the shapes with most steps run.
		maps.DeleteFunc(shapes, func(name string, _ faultShape) bool {
			return !slices.Contains([]string{"replace with a hook", "sidecar", "sandbox change"}, name)
		})
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm := newFaultLab(t, shape)
			if err := calm.end(shape.after); err != nil {
				t.Fatal(err)
			}
			want, calls, writes := calm.state(), calm.proxy.Calls(), calm.proxy.Writes()
			count := map[string]int{}
			// Calls that hang need time but no processor.
			var hanging sync.WaitGroup
			slots := make(chan struct{}, 16)
			for _, method := range calls {
				count[method]++
				for fault, d := range faultsOf(name, slices.Contains(writes, method), count[method]) {
					d.Method, d.Nth = method, count[method]
					title := fmt.Sprintf("%s %d %s", method, d.Nth, fault)
					if !hangs(d) {
						faultAt(t, shape, d, title, want)
						continue
					}
					hanging.Go(func() {
						slots <- struct{}{}
						defer func() { <-slots }()
						faultAt(t, shape, d, title, want)
					})
				}
			}
			hanging.Wait()
		})
	}
}

func faultAt(t *testing.T, shape faultShape, d runtimetest.Disturbance, name, want string) {
	t.Helper()
	f := newFaultLab(t, shape)
	f.proxy.Disturb(d)
	if hangs(d) {
		f.impatient()
	}
	for range 40 {
		p, err := f.once(shape.after)
		if err != nil {
			checkFaultText(t, name, err)
			break
		}
		if len(p.Steps) == 0 {
			break
		}
	}
	if f.proxy.Pending() == 0 {
		f.patient() // A slow machine may need longer for the other calls.
	}
	if err := f.end(shape.after); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	f.proxy.Calm()
	f.patient()
	if got := f.state(); got != want {
		t.Errorf("%s: in the end there is\n%s\nundisturbed it is\n%s", name, got, want)
	}
}

// TestStopThatLosesItsAnswer checks that only the state of the container counts, whatever the runtime answered. If it
// continues to run, that is an error.
func TestStopThatLosesItsAnswer(t *testing.T) {
	shape := faultShapes()["delete"]
	for name, d := range map[string]runtimetest.Disturbance{"lost": {Lose: codes.Unknown}, "not begun": {Fail: codes.Unknown}} {
		f := newFaultLab(t, shape)
		d.Method, d.Nth = "StopContainer", 1
		f.proxy.Disturb(d)
		_, err := f.once(shape.after)
		if failed := err != nil; failed != (name == "not begun") {
			t.Errorf("%s: the deletion ended with %v", name, err)
		}
	}
}

// TestStopInUnknownState checks a container in unknown state that the runtime cannot stop. Nothing starts beside
// it.
func TestStopInUnknownState(t *testing.T) {
	f := newFaultLab(t, faultShapes()["replace"])
	f.server.Forget("a")
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Nth: 1, Fail: codes.Unknown, Text: "failed to kill task"})
	if _, err := f.once(f.shape.before); err == nil || !strings.Contains(err.Error(), "failed to kill task") {
		t.Errorf("the stop ended with %v", err)
	}
	if started := f.proxy.Count("StartContainer"); started > 0 {
		t.Errorf("%d containers were started beside it", started)
	}
	if err := f.converge(f.shape.before); err != nil {
		t.Error(err)
	}
}

// TestPostStartHookCutOff checks a pass whose timeout ends during a postStart hook. It has not started the container,
// and the next pass does not take it for started.
func TestPostStartHookCutOff(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	text := strings.Replace(faultShapes()["hooks"].after, "{exec: {command: [/demo, exit, '0']}}", "{sleep: {seconds: 30}}", 1)
	text = strings.Replace(text, "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 60", 1)
	f.timeout = 300 * time.Millisecond
	if _, err := f.once(text); !errors.Is(err, errTimeout) {
		t.Errorf("the pass ended with %v", err)
	}
	f.patient()
	p, err := f.engine.Pods.Plan(t.Context(), f.load(text), plan.Options{IgnoreBackoff: true})
	if err != nil || !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.StartContainer && s.Container == "a" }) {
		t.Errorf("the container is not started again: %v %+v", err, p)
	}
}

// TestInterruptIsNotRecorded checks that a canceled step is not recorded as a failure of the pod.
func TestInterruptIsNotRecorded(t *testing.T) {
	text := strings.Replace(faultShapes()["hooks"].after,
		"preStop: {exec: {command: [/demo, exit, '0']}}", "preStop: {sleep: {seconds: 30}}", 1)
	text = strings.Replace(text, "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 60", 1)
	f := newFaultLab(t, faultShape{before: text})
	d := f.load(text)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, err := f.engine.Pods.Delete(ctx, model.RefOf(d.Pod), executor.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the deletion ended with %v", err)
	}
	history, err := f.layout.Pod(d.Pod.UID).History().Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history.Events {
		if e.Type == state.Warning {
			t.Errorf("it reports that %s: %s", e.Reason, e.Message)
		}
	}
}

// TestRecordThatCannotBeRemoved checks a runtime that cannot remove a record, because an object behind it is not found.
// The record counts as deleted only once the runtime no longer lists it.
func TestRecordThatCannotBeRemoved(t *testing.T) {
	for _, method := range []string{"RemoveContainer", "RemovePodSandbox"} {
		f := newFaultLab(t, faultShapes()["delete"])
		f.proxy.Disturb(runtimetest.Disturbance{Method: method, Nth: 1, Fail: codes.NotFound, Text: "get container info: not found"})
		if _, err := f.once(""); err == nil || !strings.Contains(err.Error(), "restart the runtime") {
			t.Errorf("%s: the deletion ended with %v", method, err)
		}
		f.proxy.Disturb(runtimetest.Disturbance{Method: method, Nth: 1, Lose: codes.NotFound})
		if err := f.converge(""); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		f.proxy.Calm()
	}
}

// TestSandboxWhoseShimEnds checks a shim that ends while it stops its sandbox. The sandbox is stopped, but the runtime
// cleans up network and mounts only when it is called again. Any other failure is reported at once.
func TestSandboxWhoseShimEnds(t *testing.T) {
	const gone = `failed to stop sandbox container "1" in "SANDBOX_READY" state: failed to kill sandbox container: ttrpc: closed: unknown`
	shape := faultShapes()["delete"]
	for text, stops := range map[string]int{gone: 2, "failed to destroy network": 1} {
		f := newFaultLab(t, shape)
		f.proxy.Disturb(runtimetest.Disturbance{Method: "StopPodSandbox", Nth: 1, Fail: codes.Unknown, Text: text})
		_, err := f.once(shape.after)
		if ended, count := err == nil, f.proxy.Count("StopPodSandbox"); ended != (text == gone) || count != stops {
			t.Errorf("%s: the sandbox was stopped %d times, and the deletion ended with %v", text, count, err)
		}
	}
}

// TestContainerWhoseShimEnds checks a container whose shim containerd loses during the stop. containerd records the end
// later. Any other failure is reported sooner.
func TestContainerWhoseShimEnds(t *testing.T) {
	for text, ended := range map[string]bool{`failed to kill container "1": ttrpc: closed: unknown`: true, "permission denied": false} {
		f := newFaultLab(t, faultShapes()["delete"])
		f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Nth: 1, Fail: codes.Unknown, Text: text})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil && f.proxy.Count("ContainerStatus") < 40 {
				time.Sleep(time.Millisecond)
			}
			f.server.Exit("a", 0)
		}()
		if _, err := f.once(""); (err == nil) != ended {
			t.Errorf("%s: the deletion ended with %v", text, err)
		}
		cancel()
	}
}

// TestReplacementThatIsNotStarted checks a replacement that was created while its container was asked to stop and did
// not. The replacement is removed, and the container continues.
func TestReplacementThatIsNotStarted(t *testing.T) {
	f := newFaultLab(t, faultShapes()["replace"])
	before := f.state()
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Nth: 1, Fail: codes.Unknown})
	if _, err := f.once(f.shape.after); err == nil {
		t.Error("the stop did not fail")
	}
	if diff := cmp.Diff(before, f.state()); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
	if calls := f.proxy.Writes(); !slices.Equal(calls, []string{"StopContainer", "CreateContainer", "RemoveContainer"}) &&
		!slices.Equal(calls, []string{"CreateContainer", "StopContainer", "RemoveContainer"}) {
		t.Errorf("the runtime was called with %v", calls)
	}
}

// errTimeout is the cause with which the user's --timeout ends a call.
var errTimeout = errors.New("gave up in time")

// checkFaultText checks that an error names the pod and the container, and contains no transport errors.
func checkFaultText(t *testing.T, name string, err error) {
	t.Helper()
	text := err.Error()
	for _, noise := range []string{"rpc error", "RST_STREAM", "context deadline", "context canceled"} {
		if strings.Contains(text, noise) {
			t.Errorf("%s: the error has %q in it: %s", name, noise, text)
		}
	}
	if !strings.Contains(text, "default/web") {
		t.Errorf("%s: the error does not name the pod: %s", name, text)
	}
	if step := (*executor.StepError)(nil); errors.As(err, &step) &&
		step.Step.Container != "" && !strings.Contains(text, "container "+step.Step.Container+": ") {
		t.Errorf("%s: the error does not name the container: %s", name, text)
	}
}
