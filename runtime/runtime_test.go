package runtime

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
)

// socket listens on a unix socket and never answers.
func socket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}

// deadSocket is what a process that was killed leaves of its socket.
func deadSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err = l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDiscover(t *testing.T) {
	sock, dead := socket(t), deadSocket(t)
	config := filepath.Join(t.TempDir(), "crictl.yaml")
	if err := os.WriteFile(config, []byte("runtime-endpoint: unix:///from/crictl.sock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		sources EndpointSources
		want    Endpoint
	}{
		"the flag comes first":        {EndpointSources{Given: []Endpoint{{"/a.sock", "flag"}, {"/b.sock", "env"}}}, Endpoint{"unix:///a.sock", "flag"}},
		"then the environment":        {EndpointSources{Given: []Endpoint{{"", "flag"}, {"unix:///b.sock", "env"}}, NodeSocket: sock}, Endpoint{"unix:///b.sock", "env"}},
		"then a node that is up":      {EndpointSources{NodeSocket: sock, CrictlConfig: config}, Endpoint{"unix://" + sock, "podctl node"}},
		"also one that died":          {EndpointSources{NodeSocket: dead, WellKnown: []string{sock}}, Endpoint{"unix://" + dead, "podctl node"}},
		"then crictl's file":          {EndpointSources{NodeSocket: "/absent", CrictlConfig: config}, Endpoint{"unix:///from/crictl.sock", config}},
		"then a socket that is there": {EndpointSources{CrictlConfig: "/absent", WellKnown: []string{"/absent", sock}}, Endpoint{"unix://" + sock, "well-known socket"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := Discover(c.sources); err != nil || got != c.want {
				t.Errorf("%+v %v, want %+v", got, err, c.want)
			}
		})
	}
	if _, err := Discover(EndpointSources{WellKnown: []string{"/absent"}}); !errors.Is(err, ErrNoEndpoint) || !strings.Contains(err.Error(), "podctl node up") {
		t.Errorf("error %v", err)
	}
}

// TestDiscoverBelievesNobodyElse: a socket or a configuration of another user is refused by
// name and not passed over; what the user names is taken.
func TestDiscoverBelievesNobodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	sock, own, config := socket(t), socket(t), filepath.Join(t.TempDir(), "crictl.yaml")
	link := filepath.Join(t.TempDir(), "link")
	err := errors.Join(os.WriteFile(config, []byte("runtime-endpoint: unix:///his.sock\n"), 0o600), os.Symlink(own, link))
	for _, path := range []string{sock, config, link} {
		err = errors.Join(err, os.Lchown(path, 65534, 65534))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, sources := range map[string]EndpointSources{
		"the node's socket":   {NodeSocket: sock, WellKnown: []string{own}},
		"a well-known socket": {WellKnown: []string{sock, own}},
		"a link to a socket":  {WellKnown: []string{link}},
		"crictl's file":       {CrictlConfig: config, WellKnown: []string{own}},
	} {
		if got, err := Discover(sources); err == nil || !strings.Contains(err.Error(), "user 65534") || !strings.Contains(err.Error(), "--runtime-endpoint") {
			t.Errorf("%s: %+v %v", name, got, err)
		}
		sources.Given = []Endpoint{{Address: sock}}
		if got, err := Discover(sources); err != nil || got.Socket() != sock {
			t.Errorf("%s, and one that is named: %+v %v", name, got, err)
		}
	}
}

func TestRuntimeThatDoesNotAnswer(t *testing.T) {
	client, err := Connect(Endpoint{Address: "unix://" + socket(t), Origin: "test"}, "", 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	_, err = client.Version(t.Context(), nil)
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "no answer within 100ms") || !strings.Contains(err.Error(), "test") {
		t.Errorf("error %v", err)
	}
}

// TestTimeoutNamesTheRuntime: nor does the user's own time end without a word of what was
// asked; an interrupt needs none.
func TestTimeoutNamesTheRuntime(t *testing.T) {
	client, err := Connect(Endpoint{Address: "unix://" + socket(t), Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	cause := errors.New("gave up after 20ms (--timeout)")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
	defer cancel()
	_, err = client.Version(ctx, nil)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), client.Endpoint.String()) {
		t.Errorf("error %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = client.Version(interrupted, nil); err != context.Canceled { //nolint:errorlint // nothing is around it
		t.Errorf("error %v", err)
	}
}

// TestImageServiceThatDoesNotAnswer: what fails of an image service of its own names that
// one and not the runtime, which answers.
func TestImageServiceThatDoesNotAnswer(t *testing.T) {
	l := newLab(t, "i:1")
	images := socket(t)
	client, err := Connect(l.engine.client.Endpoint, images, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if _, err = client.Version(t.Context(), nil); err != nil {
		t.Error(err)
	}
	_, err = client.Images.ListImages(t.Context(), nil)
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Endpoint != (Endpoint{"unix://" + images, "--image-endpoint"}) {
		t.Errorf("error %v", err)
	}
}

// TestRuntimeThatIsStarting: containerd answers before it knows anything, and what waits for
// it goes on.
func TestRuntimeThatIsStarting(t *testing.T) {
	l := newLab(t)
	starting := errors.New("server is not initialized yet")
	l.server.Fail(runtimetest.Fault{Method: "Version", Times: 1, Err: starting})
	_, err := l.engine.client.Version(t.Context(), nil)
	if gone := (*UnavailableError)(nil); !errors.As(err, &gone) || !strings.Contains(err.Error(), "is starting") {
		t.Errorf("error %v", err)
	}
	l.server.Fail(runtimetest.Fault{Method: "Version", Times: 1, Err: starting})
	if err := l.engine.Patiently(t.Context(), func() error { _, err := l.engine.client.Version(t.Context(), nil); return err }); err != nil {
		t.Errorf("asked again: %v", err)
	}
}

func TestSocketsThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{"/absent.sock": "no such socket", file: "is not a socket"} {
		_, err := Connect(Endpoint{Address: "unix://" + path, Origin: "test"}, "", time.Second)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
		_, err = Connect(Endpoint{Address: "unix://" + socket(t), Origin: "test"}, path, time.Second)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path+" (--image-endpoint)") {
			t.Errorf("%s as the image service: %v", path, err)
		}
	}
}

// TestRuntimeNoticesTheTimeFirst: a call that the other side breaks off as the caller's
// time ends has ended for the caller's reason.
func TestRuntimeNoticesTheTimeFirst(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), deadlineSlack/2, errTimeout)
	defer cancel()
	c := connection{Client: &Client{Timeout: time.Minute}}
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return status.Error(codes.DeadlineExceeded, "stream terminated by RST_STREAM with error code: CANCEL")
	}
	if err := c.intercept(ctx, "Status", nil, nil, nil, invoke); !errors.Is(err, errTimeout) {
		t.Errorf("it ended with %v", err)
	}
}

// graph runs steps that only note that they ran; those named in failing fail.
func graph(t *testing.T, steps []plan.Step, failing ...string) (events []string) {
	t.Helper()
	x := &execution{
		plan: &plan.Plan{Steps: steps}, e: &Engine{now: time.Now}, slots: make(chan struct{}, 2), states: map[string]stepState{},
		turns: map[string]*turn{},
		opts: Options{Report: func(ev Event) {
			if ev.Kind != StepStarted {
				events = append(events, ev.Step.ID+" "+string(ev.Kind))
			}
		}},
	}
	x.act = func(_ context.Context, s *plan.Step) (string, error) {
		if slices.Contains(failing, s.ID) {
			return "", errors.New("told to fail")
		}
		return "", nil
	}
	x.walk(t.Context())
	return events
}

func TestFailuresStopWhatTheySay(t *testing.T) {
	steps := func(onFailure plan.OnFailure) []plan.Step {
		return []plan.Step{
			{ID: "a", OnFailure: onFailure},
			{ID: "b", Needs: plan.After("a")},
			{ID: "c", Needs: plan.After("b")},
		}
	}
	cases := map[string]struct {
		onFailure plan.OnFailure
		want      []string
	}{
		"abort leaves out the rest":                 {plan.Abort, []string{"a Failed", "b Skipped", "c Skipped"}},
		"skipContainer leaves out what comes after": {plan.SkipContainer, []string{"a Failed", "b Skipped", "c Skipped"}},
		"continue goes on":                          {plan.Continue, []string{"a Failed", "b Done", "c Done"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, graph(t, steps(c.onFailure), "a")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSkippingSparesSiblings: a container that cannot be started keeps none from starting
// that only comes after it. Without a plain init container nothing goes on.
func TestSkippingSparesSiblings(t *testing.T) {
	for onFailure, last := range map[plan.OnFailure]string{plan.Continue: "start-b Done", plan.Abort: "start-b Skipped"} {
		got := graph(t, []plan.Step{
			{ID: "pull-a", OnFailure: plan.SkipContainer},
			{ID: "start-a", OnFailure: onFailure, Needs: plan.After("pull-a")},
			{ID: "start-b", OnFailure: plan.Continue, Needs: plan.After("start-a")},
			{ID: "start-c", OnFailure: plan.Continue},
		}, "pull-a")
		slices.Sort(got)
		if diff := cmp.Diff([]string{"pull-a Failed", "start-a Skipped", last, "start-c Done"}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", onFailure, diff)
		}
	}
}

// TestSystemdCgroupOfAnOldRuntime: containerd 1.x does not answer RuntimeConfig, and has
// the driver in the configuration of its default runtime.
func TestSystemdCgroupOfAnOldRuntime(t *testing.T) {
	for text, want := range map[string]bool{
		`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}}`:                         true,
		`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"BinaryName":"runc"}}}}}`:                          false,
		`{"containerd":{"defaultRuntimeName":"kata","runtimes":{"runc":{"options":{"SystemdCgroup":true}},"kata":{"options":null}}}}`: false,
		`not JSON`: false,
	} {
		if got := readInfo(map[string]string{"config": text}).systemdCgroup(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestReachedInTimeIfOnlyJust: the time may run out in the moment in which a goal is reached.
func TestReachedInTimeIfOnlyJust(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	if err := (&waiter{goal: Ready}).translate(ctx, nil); err != nil {
		t.Error(err)
	}
}

// fixedStatus is a runtime that says one thing of itself.
type fixedStatus struct {
	runtimeapi.RuntimeServiceClient
	status *runtimeapi.StatusResponse
}

// Status is asked for by whoever wants to know a runtime.
func (f *fixedStatus) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	return f.status, nil
}

// TestHandlersOfAnOldRuntime: containerd 1.6 does not list its handlers, and has them in
// its configuration. What a runtime lists is believed.
func TestHandlersOfAnOldRuntime(t *testing.T) {
	info := map[string]string{"config": `{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{},"gvisor":{"options":null}}}}`}
	listed := []*runtimeapi.RuntimeHandler{{Name: "kata"}}
	for name, c := range map[string]struct {
		status *runtimeapi.StatusResponse
		want   []string
	}{
		"in its configuration": {&runtimeapi.StatusResponse{Info: info}, []string{"", "gvisor", "runc"}},
		"listed":               {&runtimeapi.StatusResponse{Info: info, RuntimeHandlers: listed}, []string{"kata"}},
		"another runtime":      {&runtimeapi.StatusResponse{Info: map[string]string{"config": "{}"}}, nil},
	} {
		e := memoryEngine(t)
		e.client.RuntimeServiceClient = &fixedStatus{e.client.RuntimeServiceClient, c.status}
		facts, err := e.runtimeFacts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := &snapshot.Pod{Runtime: facts.Runtime}
		if diff := cmp.Diff(c.want, s.Observed(model.PodRef{}, nil).Runtime.Handlers); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestStarted: a container that ended well before anybody looked has been started, one that
// crashed or waits has not, a sidecar among them.
func TestStarted(t *testing.T) {
	ended := func(code int32) v1.ContainerStatus {
		return v1.ContainerStatus{Started: new(false), State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}}
	}
	runs, waits := v1.ContainerStatus{Started: new(true)}, v1.ContainerStatus{Started: new(false)}
	always := v1.ContainerRestartPolicyAlways
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}},
		Containers:     []v1.Container{{Name: "a"}, {Name: "b"}},
	}}
	w := &waiter{goal: Started, desired: &podspec.Desired{Pod: pod}}
	for name, c := range map[string]struct {
		init, side, a, b v1.ContainerStatus
		want             bool
	}{
		"all run":                   {ended(0), runs, runs, runs, true},
		"one ended":                 {ended(0), runs, ended(0), runs, true},
		"one failed":                {ended(0), runs, ended(1), runs, false},
		"a sidecar crashed":         {ended(0), waits, runs, runs, false},
		"the record of one is gone": {waits, runs, runs, runs, true},
	} {
		c.init.Name, c.side.Name, c.a.Name, c.b.Name = "init", "side", "a", "b"
		status := &v1.PodStatus{
			Phase: v1.PodRunning, InitContainerStatuses: []v1.ContainerStatus{c.init, c.side}, ContainerStatuses: []v1.ContainerStatus{c.a, c.b},
		}
		if got := w.reached(status); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
