package containerd

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	apievents "github.com/containerd/containerd/api/events"
	eventsapi "github.com/containerd/containerd/api/services/events/v1"
	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/typeurl/v2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// eventServer sends events, calls sent, and then breaks the stream. If broken is nil, it waits for the client.
type eventServer struct {
	eventsapi.UnimplementedEventsServer

	events []any
	sent   func()
	broken error
}

func (s *eventServer) Subscribe(_ *eventsapi.SubscribeRequest, stream eventsapi.Events_SubscribeServer) error {
	for _, e := range s.events {
		data, err := typeurl.MarshalAnyToProto(e)
		if err != nil {
			return err
		}
		if err = stream.Send(&types.Envelope{Namespace: criNamespace, Event: data}); err != nil {
			return err
		}
	}
	if s.sent != nil {
		s.sent()
	}
	if s.broken == nil {
		<-stream.Context().Done()
		return stream.Context().Err() // Without it, the client could see the end of the stream before that of its context.
	}
	return s.broken
}

// watched returns the exits reported for a server's events, and the error at the end.
func watched(ctx context.Context, t *testing.T, register func(*grpc.Server)) (received []Exit, err error) {
	t.Helper()
	err = watching(ctx, t, register, func(e Exit) { received = append(received, e) })
	return received, err
}

// watching watches a server until the watch ends.
func watching(ctx context.Context, t *testing.T, register func(*grpc.Server), received func(Exit)) error {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	store, err := OpenStore(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test is over
	return store.WatchExits(ctx, received)
}

// TestWatchExits checks that processes of an exec are not reported, and that an earlier event marks a container that
// ran out of memory.
func TestWatchExits(t *testing.T) {
	at := time.Unix(1700000000, 5).UTC()
	exit := func(container, process string, code uint32) *apievents.TaskExit {
		return &apievents.TaskExit{ContainerID: container, ID: process, ExitStatus: code, ExitedAt: timestamppb.New(at)}
	}
	server := &eventServer{broken: status.Error(codes.Unavailable, "gone"), events: []any{
		exit("a", "a", 0), exit("a", "exec-1", 3), &apievents.TaskOOM{ContainerID: "b"}, exit("b", "b", 137), exit("b", "b", 137),
	}}
	received, err := watched(t.Context(), t, func(s *grpc.Server) { eventsapi.RegisterEventsServer(s, server) })
	want := []Exit{
		{ContainerID: "a", At: at},
		{ContainerID: "b", Code: 137, At: at, OutOfMemory: true},
		{ContainerID: "b", Code: 137, At: at},
	}
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a broken stream ends with %v", err)
	}
}

// TestWatchExitsOfOtherRuntimes checks that another runtime is unsupported.
func TestWatchExitsOfOtherRuntimes(t *testing.T) {
	if _, err := watched(t.Context(), t, func(*grpc.Server) {}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a runtime without containerd's API: %v", err)
	}
}

// TestWatchExitsEnds checks that the watch ends with its context.
func TestWatchExitsEnds(t *testing.T) {
	ctx, expire := runtimetest.Expiring(t.Context())
	_, err := watched(ctx, t, func(s *grpc.Server) { eventsapi.RegisterEventsServer(s, &eventServer{sent: expire}) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}

// taskServer lists tasks.
type taskServer struct {
	tasks.UnimplementedTasksServer

	list []*task.Process
}

func (s *taskServer) List(context.Context, *tasks.ListTasksRequest) (*tasks.ListTasksResponse, error) {
	return &tasks.ListTasksResponse{Tasks: s.list}, nil
}

// TestWatchExitsReportsEarlierOnes checks that earlier exits that containerd has not cleaned up are reported when the
// watch begins.
func TestWatchExitsReportsEarlierOnes(t *testing.T) {
	at := time.Unix(1700000000, 5).UTC()
	list := &taskServer{list: []*task.Process{
		{ID: "runs", Status: task.Status_RUNNING},
		{ID: "ended", Status: task.Status_STOPPED, ExitStatus: 7, ExitedAt: timestamppb.New(at)},
		{ID: "odd", Status: task.Status_STOPPED},
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var received []Exit
	err := watching(ctx, t, func(s *grpc.Server) {
		eventsapi.RegisterEventsServer(s, &eventServer{})
		tasks.RegisterTasksServer(s, list)
	}, func(e Exit) { received = append(received, e); cancel() })
	want := []Exit{{ContainerID: "ended", Code: 7, At: at}}
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("%v, reported (-want +got):\n%s", err, diff)
	}
}
