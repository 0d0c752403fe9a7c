package cri

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// lab is a client of an in-memory runtime with a sandbox and a running container.
type lab struct {
	*Client
	server             *runtimetest.Server
	sandbox, container string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	server, _, endpoint := runtimetest.Start(t, "i:1")
	client, err := Connect(Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	box, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{
		Config: &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: box.GetPodSandboxId(),
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "a"}, Image: &runtimeapi.ImageSpec{Image: "i:1"},
		},
	})
	if err == nil {
		_, err = client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: made.GetContainerId()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return &lab{client, server, box.GetPodSandboxId(), made.GetContainerId()}
}

// TestRemovalOfMissingObjects checks that removing a missing object succeeds, but fails with advice if the runtime
// still lists the object.
func TestRemovalOfMissingObjects(t *testing.T) {
	gone := status.Error(codes.NotFound, "gone")
	for name, c := range map[string]struct {
		method string
		remove func(context.Context, *Client, string) error
	}{
		"container": {"RemoveContainer", func(ctx context.Context, c *Client, id string) error { return c.RemoveRecord(ctx, id) }},
		"sandbox":   {"RemovePodSandbox", func(ctx context.Context, c *Client, id string) error { return c.RemoveSandbox(ctx, id) }},
	} {
		l := newLab(t)
		id := map[string]string{"container": l.container, "sandbox": l.sandbox}[name]
		l.server.Fail(runtimetest.Fault{Method: c.method, Times: 2, Err: gone})
		if err := c.remove(t.Context(), l.Client, "another"); err != nil {
			t.Errorf("%s that is not there: %v", name, err)
		}
		if err := c.remove(t.Context(), l.Client, id); err == nil ||
			!IsNotFound(err) || !strings.Contains(err.Error(), "has a record of something that it has lost") {
			t.Errorf("%s that is listed: %v", name, err)
		}
		if err := c.remove(t.Context(), l.Client, id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l.server.Fail(runtimetest.Fault{Method: c.method, Times: 1, Err: gone})
		l.server.Fail(runtimetest.Fault{Method: "ListContainers", Times: 1, Err: errors.New("injected failure")})
		if err := c.remove(t.Context(), l.Client, id); err == nil || !strings.Contains(err.Error(), "injected failure") {
			t.Errorf("%s, and it is unknown whether it is listed: %v", name, err)
		}
	}
}

// TestBusyRuntimes checks that calls to a busy runtime are repeated and that any other answer is final. Stopping a
// missing sandbox succeeds.
func TestBusyRuntimes(t *testing.T) {
	busy := status.Error(codes.Unknown, "container is in starting state")
	l := newLab(t)
	for method, call := range map[string]func() error{
		"RemoveContainer": func() error { return l.RemoveRecord(t.Context(), l.container) },
		"StopPodSandbox":  func() error { return l.StopSandbox(t.Context(), l.sandbox) },
	} {
		l.server.Fail(runtimetest.Fault{Method: method, Times: 2, Err: busy})
		if err := call(); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: errors.New("injected failure")})
		if err := call(); err == nil || err.Error() != "injected failure" {
			t.Errorf("%s that fails: %v", method, err)
		}
	}
	l.server.Fail(runtimetest.Fault{Method: "StopPodSandbox", Times: 1, Err: status.Error(codes.NotFound, "gone")})
	if err := l.StopSandbox(t.Context(), l.sandbox); err != nil {
		t.Errorf("a sandbox that is gone: %v", err)
	}
}

// silent is a runtime that does not report the process of a container.
type silent struct {
	runtimeapi.RuntimeServiceClient
}

// ContainerStatus returns no process id.
func (silent) ContainerStatus(
	context.Context, *runtimeapi.ContainerStatusRequest, ...grpc.CallOption,
) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Info: map[string]string{"info": "{}"}}, nil
}

// TestProcesses checks that Process returns the runtime's process id, and names a runtime that reports none.
func TestProcesses(t *testing.T) {
	l := newLab(t)
	if pid, err := l.Process(t.Context(), l.container); pid != 42 || err != nil {
		t.Errorf("%d, %v", pid, err)
	}
	l.server.Exit("a", 0)
	if _, err := l.Process(t.Context(), l.container); err == nil ||
		!strings.Contains(err.Error(), l.Endpoint.String()+" does not report the process") {
		t.Errorf("a container that has ended: %v", err)
	}
	if _, err := l.Process(t.Context(), "another"); !IsNotFound(err) {
		t.Errorf("another container: %v", err)
	}
	l.RuntimeServiceClient = silent{l.RuntimeServiceClient}
	if _, err := l.Process(t.Context(), l.container); err == nil || !strings.Contains(err.Error(), "does not report the process") {
		t.Errorf("a runtime that leaves it out: %v", err)
	}
}

// TestRetries checks that calls are repeated only while the runtime does not answer, until the context ends.
func TestRetries(t *testing.T) {
	l := newLab(t)
	gone, failed := error(&UnavailableError{Reason: "away"}), errors.New("injected failure")
	for name, c := range map[string]struct {
		answers []error
		asked   int
		want    error
	}{
		"the runtime answers":    {[]error{nil}, 1, nil},
		"the runtime comes back": {[]error{gone, nil}, 2, nil},
		"the runtime refuses":    {[]error{gone, failed}, 2, failed},
	} {
		asked := 0
		err := l.WithRetries(t.Context(), func() error { asked++; return c.answers[asked-1] })
		if asked != c.asked || !errors.Is(err, c.want) {
			t.Errorf("%s: called %d times, %v", name, asked, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := l.WithRetries(ctx, func() error { asked++; cancel(); return gone })
	if asked != 1 || !errors.Is(err, gone) {
		t.Errorf("interrupted: called %d times, %v", asked, err)
	}
}

// TestNoneAnswered checks that NoneAnswered returns an error if the user interrupted the query or the runtime does not
// answer at all. It returns none if the runtime answers for one object or in general.
func TestNoneAnswered(t *testing.T) {
	gone, failed, ended := error(&UnavailableError{Reason: "away"}), errors.New("injected failure"), errors.New("interrupted")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	late, cancelLate := context.WithDeadline(t.Context(), time.Now())
	defer cancelLate()
	l := newLab(t)
	dead := newLab(t)
	dead.server.Close()
	for name, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // a case
		of   *lab
		errs []error
		want error
	}{
		"all are well":            {t.Context(), dead, []error{nil, nil}, nil},
		"one fails":               {t.Context(), dead, []error{nil, gone}, nil},
		"one answers":             {t.Context(), dead, []error{failed, gone}, nil},
		"none answers":            {t.Context(), dead, []error{gone, gone}, gone},
		"none answers but itself": {t.Context(), l, []error{gone, gone}, nil},
		"no call was made":        {t.Context(), dead, nil, nil},
		"the query was ended":     {over, l, []error{nil, nil}, ended},
		"ended during a call":     {over, l, []error{nil, failed}, ended},
		"timeout of one call":     {late, dead, []error{nil, cancelled(context.DeadlineExceeded, l.Endpoint)}, nil},
		"timeout of all calls":    {late, l, []error{cancelled(context.DeadlineExceeded, l.Endpoint)}, nil},
		"timeout, no answer":      {late, dead, []error{cancelled(context.DeadlineExceeded, l.Endpoint)}, context.DeadlineExceeded},
	} {
		if err := c.of.NoneAnswered(c.ctx, c.errs); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestAdvice checks that the text for users names the cause of a busy network namespace.
func TestAdvice(t *testing.T) {
	reported := status.Error(codes.Unknown, `failed to remove netns: unlink /run/netns/cni-1: device or resource busy`)
	if text := (&callError{err: reported}).Error(); !strings.HasPrefix(text, "failed to remove netns") ||
		!strings.Contains(text, "ip netns add") {
		t.Error(text)
	}
	if text := (&callError{err: status.Error(codes.Unknown, "device or resource busy")}).Error(); strings.Contains(text, "umount") {
		t.Error(text)
	}
}

// TestRuntimeErrorText checks that errors show the runtime's message without the transport's prefix, and with the
// meaning of some codes. The code is kept.
func TestRuntimeErrorText(t *testing.T) {
	for code, want := range map[codes.Code]string{
		codes.Unknown: "no space", codes.NotFound: "no space", codes.Internal: "the runtime failed: no space",
		codes.ResourceExhausted: "the runtime lacks resources: no space",
	} {
		err := error(&callError{err: status.Error(code, "no space")})
		if err.Error() != want || status.Code(errors.Unwrap(err)) != code {
			t.Errorf("%s: %q, want %q", code, err, want)
		}
	}
}

// TestTimesOfCalls checks that a call that waits for something gets additional time.
func TestTimesOfCalls(t *testing.T) {
	c := connection{Client: &Client{Timeout: time.Minute}}
	for name, request := range map[string]struct {
		of   any
		want time.Duration
	}{
		"a question":            {&runtimeapi.VersionRequest{}, time.Minute},
		"a stop":                {&runtimeapi.StopContainerRequest{Timeout: 30}, time.Minute + 30*time.Second},
		"a command":             {&runtimeapi.ExecSyncRequest{Timeout: 5}, time.Minute + 5*time.Second},
		"a command of any time": {&runtimeapi.ExecSyncRequest{}, time.Minute + 24*time.Hour},
		"a sandbox":             {&runtimeapi.RunPodSandboxRequest{}, 2 * time.Minute},
		"a pull":                {&runtimeapi.PullImageRequest{}, time.Minute + time.Hour},
	} {
		var left time.Duration
		invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return nil
		}
		if err := c.intercept(t.Context(), "x", request.of, nil, nil, invoke); err != nil ||
			left > request.want || left < request.want-time.Minute/2 {
			t.Errorf("%s: it has %v, want %v, %v", name, left, request.want, err)
		}
	}
}
