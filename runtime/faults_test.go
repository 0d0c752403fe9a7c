package runtime

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// faultShape is a pod, what was done to it before, and what is done while a call goes
// wrong.
type faultShape struct {
	// before is applied and settled undisturbed; empty means that there is nothing yet.
	before string
	// after is applied; empty means that the pod is deleted.
	after string
	// behave tells what containers do.
	behave map[string][]runtimetest.Behaviour
}

// faultShapes are the shapes that faults are tried on.
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
}

func newFaultLab(t *testing.T, shape faultShape) *faultLab {
	t.Helper()
	l := newLab(t, "i:1", "i:2")
	socket := l.engine.client.Endpoint.Socket()
	front := filepath.Join(filepath.Dir(socket), "front.sock")
	proxy, err := runtimetest.StartProxy(t.Context(), front, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	client, err := Connect(Endpoint{Address: "unix://" + front, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l.engine = NewEngine(client, Settings{Layout: l.layout, Now: l.clock.Now, Cgroups: l.engine.cgroups})
	f := &faultLab{lab: l, proxy: proxy, shape: shape}
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
	m, err := podspec.Loader{Stdin: strings.NewReader(text)}.Load(f.t.Context(), "-")
	if err != nil || m.Err() != nil {
		f.t.Fatalf("%v %v\n%s", err, m.Err(), text)
	}
	return m.Pods[0]
}

// once does what is done once: a pass, or the deletion.
func (f *faultLab) once(text string) (*plan.Plan, error) {
	if text != "" {
		return f.pass(f.load(text))
	}
	outcome, err := f.engine.Delete(f.t.Context(), plan.RefOf(f.load(f.shape.before).Pod), Options{})
	if err != nil {
		return nil, err
	}
	return outcome.Plan, outcome.Err()
}

// end lets time pass until nothing happens by itself any more.
func (f *faultLab) end(text string) error {
	if err := f.converge(text); err != nil {
		return err
	}
	f.clock.Advance(time.Minute)
	return f.converge(text)
}

// converge goes on until nothing is left to do.
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

// state is what is there in the end: every record by name and state, and the
// sandboxes. Attempts are left out: one that was lost is skipped.
func (f *faultLab) state() string {
	f.t.Helper()
	text := f.shape.after
	if text == "" {
		text = f.shape.before
	}
	d := f.load(text)
	s, err := f.engine.observe(f.t.Context(), plan.RefOf(d.Pod), d)
	if err != nil {
		f.t.Fatal(err)
	}
	var lines []string
	o := s.Observed(s.Pod, nil)
	for i := range o.Sandboxes {
		lines = append(lines, "sandbox "+string(o.Sandboxes[i].State))
	}
	for i := range o.Containers {
		if c := &o.Containers[i]; c.State != plan.Exited || c.ExitCode == 0 {
			lines = append(lines, c.Name+" "+string(c.State)+" "+c.Image)
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// readFaults are what goes wrong with a call that only asks, writeFaults with one that
// changes something.
func readFaults() map[string]runtimetest.Disturbance {
	return map[string]runtimetest.Disturbance{"unavailable": {Fail: codes.Unavailable}}
}

func writeFaults() map[string]runtimetest.Disturbance {
	return map[string]runtimetest.Disturbance{
		"unavailable": {Fail: codes.Unavailable}, "deadline": {Fail: codes.DeadlineExceeded}, "internal": {Fail: codes.Internal},
		"exhausted": {Fail: codes.ResourceExhausted}, "answer lost": {Lose: codes.Unavailable}, "answer broken": {Lose: codes.Internal},
	}
}

// TestFaultsAtEveryCall: whatever call goes wrong in whatever way, the error says what
// and where, nothing is there twice, and the next passes come to the same end as if
// nothing had happened.
func TestFaultsAtEveryCall(t *testing.T) {
	shapes := faultShapes()
	if testing.Short() {
		// With the race detector, which makes everything slow, the ones with most steps.
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
			for _, method := range calls {
				count[method]++
				faults := readFaults()
				if slices.Contains(writes, method) {
					faults = writeFaults()
				}
				for fault, d := range faults {
					d.Method, d.Nth = method, count[method]
					faultAt(t, shape, d, fmt.Sprintf("%s %d %s", method, d.Nth, fault), want)
				}
			}
		})
	}
}

func faultAt(t *testing.T, shape faultShape, d runtimetest.Disturbance, name, want string) {
	t.Helper()
	f := newFaultLab(t, shape)
	f.proxy.Disturb(d)
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
	if err := f.end(shape.after); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	f.proxy.Calm()
	if got := f.state(); got != want {
		t.Errorf("%s: in the end there is\n%s\nundisturbed it is\n%s", name, got, want)
	}
}

// checkFaultText: an error names the pod and speaks of no transport.
func checkFaultText(t *testing.T, name string, err error) {
	t.Helper()
	if text := err.Error(); !strings.Contains(text, "default/web") || strings.Contains(text, "rpc error") {
		t.Errorf("%s: the error says %q", name, text)
	}
}
