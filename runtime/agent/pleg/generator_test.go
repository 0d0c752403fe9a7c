package pleg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
)

// fakeRuntime lists containers and can send events.
type fakeRuntime struct {
	// reportsExits turns on the reports of exits. exits carries the IDs of containers whose processes have ended.
	reportsExits bool
	exits        chan string
	// watches counts the calls of watchExits.
	watches int
	runtimeapi.RuntimeServiceClient
	mu         sync.Mutex
	containers []*runtimeapi.Container
	// down makes every call fail.
	down error
	// noEvents is the error of opening a stream. If nil, a stream is opened.
	noEvents error
	lists    int
	opened   int
	stream   *fakeStream
}

type fakeStream struct {
	grpc.ServerStreamingClient[runtimeapi.ContainerEventResponse]
	ctx    context.Context //nolint:containedctx // it is the stream's
	events chan *runtimeapi.ContainerEventResponse
	broken chan error
}

func (s *fakeStream) Recv() (*runtimeapi.ContainerEventResponse, error) {
	select {
	case e := <-s.events:
		return e, nil
	case err := <-s.broken:
		return nil, err
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (f *fakeRuntime) GetContainerEvents(
	ctx context.Context, _ *runtimeapi.GetEventsRequest, _ ...grpc.CallOption,
) (runtimeapi.RuntimeService_GetContainerEventsClient, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	f.stream = &fakeStream{ctx: ctx, events: make(chan *runtimeapi.ContainerEventResponse), broken: make(chan error, 1)}
	if err := cmp.Or(f.down, f.noEvents); err != nil {
		f.stream.broken <- err
	}
	return f.stream, nil
}

// change changes the runtime.
func (f *fakeRuntime) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// counted returns the numbers of lists and of opened streams.
func (f *fakeRuntime) counted() (lists, streams int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists, f.opened
}

func (f *fakeRuntime) send(event *runtimeapi.ContainerEventResponse) { f.current().events <- event }

func (f *fakeRuntime) current() *fakeStream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stream
}

func (f *fakeRuntime) ListContainers(
	context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption,
) (*runtimeapi.ListContainersResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	return &runtimeapi.ListContainersResponse{Containers: f.containers}, f.down
}

// watchExits reports exits until one without an ID breaks the connection.
func (f *fakeRuntime) watchExits(ctx context.Context, onExit func(string)) error {
	f.change(func() { f.watches++ })
	if !f.reportsExits {
		return fmt.Errorf("no containerd: %w", errors.ErrUnsupported)
	}
	for {
		select {
		case id := <-f.exits:
			if id == "" {
				return io.ErrUnexpectedEOF
			}
			onExit(id)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func container(id, pod string, state runtimeapi.ContainerState) *runtimeapi.Container {
	return &runtimeapi.Container{Id: id, State: state, Labels: map[string]string{criconfig.LabelPodUID: pod}}
}

const (
	running = runtimeapi.ContainerState_CONTAINER_RUNNING
	exited  = runtimeapi.ContainerState_CONTAINER_EXITED
)

// watched runs a generator with a runtime in a synctest bubble. events returns the events since its last call, with the
// seconds since the start.
func watched(t *testing.T, f *fakeRuntime, test func(events func() string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		var texts []string
		g := New(f, Usual(), func(e Event) {
			text := fmt.Sprintf("%.1f", time.Since(began).Seconds())
			if e.Up {
				text += " up"
			}
			if e.Down != nil {
				text += " down"
			}
			texts = append(texts, fmt.Sprint(text, " ", e.Pods))
		})
		f.exits, g.Exits = make(chan string), f.watchExits
		done := make(chan struct{})
		go func() { g.Run(ctx); close(done) }()
		test(func() string {
			synctest.Wait()
			defer func() { texts = nil }()
			return strings.Join(texts, "; ")
		})
		stop()
		<-done
	})
}

func wantEvents(t *testing.T, events func() string, want string) {
	t.Helper()
	if got := events(); got != want {
		t.Errorf("notified of %q, want %q", got, want)
	}
}

// TestWithoutEvents checks that all containers are listed each second (kubelet: TestRelisting).
func TestWithoutEvents(t *testing.T) {
	f := &fakeRuntime{noEvents: status.Error(codes.Unimplemented, "no"), containers: []*runtimeapi.Container{container("x", "p", running)}}
	watched(t, f, func(events func() string) {
		wantEvents(t, events, "0.0 up [p]")
		time.Sleep(10500 * time.Millisecond)
		wantEvents(t, events, "")
		if lists, streams := f.counted(); lists != 11 || streams > 2 {
			t.Errorf("%d lists and %d streams in ten seconds", lists, streams)
		}
		f.change(func() {
			f.containers = []*runtimeapi.Container{container("x", "p", exited), container("y", "q", running)}
		})
		time.Sleep(time.Second)
		wantEvents(t, events, "11.0 [p q]")
		f.change(func() { f.containers = []*runtimeapi.Container{container("y", "q", running)} })
		time.Sleep(time.Second)
		wantEvents(t, events, "12.0 [p]")
	})
}

// TestWithEvents checks that events are reported at once, and that containers are listed once a minute. A list does not
// repeat the changes that events have reported.
func TestWithEvents(t *testing.T) {
	f := &fakeRuntime{containers: []*runtimeapi.Container{container("x", "p", running)}}
	watched(t, f, func(events func() string) {
		time.Sleep(5 * time.Second)
		wantEvents(t, events, "0.0 up [p]")
		before, _ := f.counted()
		time.Sleep(10 * time.Minute)
		lists, _ := f.counted()
		if made := lists - before; made < 9 || made > 11 {
			t.Errorf("%d lists in ten minutes", made)
		}
		f.send(event("x", "p", runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT))
		f.change(func() { f.containers = []*runtimeapi.Container{container("x", "p", exited)} })
		wantEvents(t, events, "605.0 [p]")
		f.send(event("sandbox-p", "p", runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT))
		wantEvents(t, events, "605.0 [p]")
		time.Sleep(2 * time.Minute)
		wantEvents(t, events, "")
	})
}

func event(id, pod string, happened runtimeapi.ContainerEventType) *runtimeapi.ContainerEventResponse {
	return &runtimeapi.ContainerEventResponse{
		ContainerId: id, ContainerEventType: happened,
		PodSandboxStatus: &runtimeapi.PodSandboxStatus{Id: "sandbox-" + pod, Metadata: &runtimeapi.PodSandboxMetadata{Uid: pod}},
	}
}

// TestEventsOfUnknownContainers checks that the pod of such an event is found in a list.
func TestEventsOfUnknownContainers(t *testing.T) {
	f := &fakeRuntime{}
	watched(t, f, func(events func() string) {
		time.Sleep(5 * time.Second)
		wantEvents(t, events, "0.0 up []")
		f.change(func() { f.containers = []*runtimeapi.Container{container("x", "p", running)} })
		f.send(&runtimeapi.ContainerEventResponse{ContainerId: "x"})
		wantEvents(t, events, "5.0 [p]")
	})
}

// TestRuntimeGoesDown checks that a failure is reported once, and that all pods are checked when the runtime is back.
// Each new stream starts with a list. A broken stream is opened again after a tenth of a second, then after increasing
// pauses.
func TestRuntimeGoesDown(t *testing.T) {
	f := &fakeRuntime{containers: []*runtimeapi.Container{container("x", "p", running)}}
	watched(t, f, func(events func() string) {
		time.Sleep(10 * time.Second)
		wantEvents(t, events, "0.0 up [p]")
		f.change(func() { f.down = status.Error(codes.Unavailable, "gone") })
		f.current().broken <- io.ErrUnexpectedEOF
		wantEvents(t, events, "10.0 down []")
		_, before := f.counted()
		time.Sleep(30 * time.Second)
		wantEvents(t, events, "")
		_, opened := f.counted()
		if again := opened - before; again < 8 || again > 13 {
			t.Errorf("the stream was opened %d times in half a minute", again)
		}
		f.change(func() { f.down, f.containers = nil, []*runtimeapi.Container{container("x", "p", exited)} })
		time.Sleep(time.Second)
		wantEvents(t, events, "41.0 up [p]")
		time.Sleep(10 * time.Second)
		f.send(event("x", "p", runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT))
		wantEvents(t, events, "51.0 [p]")
	})
}

// TestExits checks that the end of a process wakes its pod before the runtime's records show it, also if the runtime
// sends no events. The exit of a sandbox causes no list, and a broken connection is opened again.
func TestExits(t *testing.T) {
	f := &fakeRuntime{
		reportsExits: true,
		noEvents:     status.Error(codes.Unimplemented, "no"),
		containers:   []*runtimeapi.Container{container("x", "p", running)},
	}
	watched(t, f, func(events func() string) {
		time.Sleep(100 * time.Millisecond)
		wantEvents(t, events, "0.0 up [p]")
		f.exits <- "x"
		wantEvents(t, events, "0.1 [p]")
		before, _ := f.counted()
		f.exits <- "sandbox"
		wantEvents(t, events, "")
		if after, _ := f.counted(); after != before {
			t.Errorf("%d lists for the exit of a sandbox", after-before)
		}
		time.Sleep(10 * time.Second)
		wantEvents(t, events, "")
		f.change(func() { f.containers = []*runtimeapi.Container{container("x", "p", exited)} })
		time.Sleep(time.Second)
		wantEvents(t, events, "11.0 [p]")
		f.exits <- ""
		time.Sleep(time.Second)
		f.exits <- "x"
		wantEvents(t, events, "12.1 [p]")
	})
}

// TestNoExits checks that a runtime that cannot report exits is called once.
func TestNoExits(t *testing.T) {
	f := &fakeRuntime{}
	watched(t, f, func(func() string) { time.Sleep(time.Hour) })
	if f.watches != 1 {
		t.Errorf("asked %d times", f.watches)
	}
}
