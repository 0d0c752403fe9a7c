package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The following tests cover behaviour that podctl relies on and the specification of the CRI does not guarantee. Each
// test documents the effect of a runtime that behaves differently. `image load`, `image save`, `image tag` and `exec
// --user` are not included, because they need containerd's own API, and podctl refuses them with other runtimes.

// contractRemovalBesideStop: the record of an ended container can be removed while its sandbox is being stopped.
// Otherwise the step fails, and the next pass removes the record.
func contractRemovalBesideStop(t *testing.T, s *subject) {
	sandbox, config := s.sandbox(t, "removal")
	s.start(t, sandbox, config, "runs", s.Stubborn)
	over := s.start(t, sandbox, config, "over", s.Once)
	s.ended(t, over)
	var stopping sync.WaitGroup
	stopping.Go(func() {
		if _, err := s.Runtime.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			t.Errorf("stopping the sandbox: %v", err)
		}
	})
	if _, err := s.Runtime.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: over}); err != nil {
		t.Errorf("removing the record: %v", err)
	}
	stopping.Wait()
	_, err := s.Runtime.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: over})
	if status.Code(err) != codes.NotFound {
		t.Errorf("the record afterwards: %v", err)
	}
}

// contractCreationBesideStop: the replacement of a container can be created while the old container stops. Otherwise
// the replacement begins after the stop has ended.
func contractCreationBesideStop(t *testing.T, s *subject) {
	const grace = 10
	sandbox, config := s.sandbox(t, "creation")
	old := s.start(t, sandbox, config, "old", s.Stubborn)
	var stopping sync.WaitGroup
	stopping.Go(func() {
		if _, err := s.Runtime.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: old, Timeout: grace}); err != nil {
			t.Errorf("stopping the old one: %v", err)
		}
	})
	id, err := s.create(t, sandbox, config, "new", s.Forever)
	if err != nil {
		t.Errorf("creating the new one: %v", err)
	}
	if !s.StopsAtOnce && s.state(t, old) != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Error("the new one was created only after the stop")
	}
	stopping.Wait()
	if got := s.state(t, id); got != runtimeapi.ContainerState_CONTAINER_CREATED {
		t.Errorf("the new one is %s", got)
	}
}

// contractEvents: if a runtime sends container events, it sends one for each start and end, with the UID of the pod. A
// runtime without events (containerd before 1.7) does not implement the call, or its stream stays silent. podctl then
// checks the pod periodically.
func contractEvents(t *testing.T, s *subject) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := s.Runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan received, 100)
	go receive(stream, events)
	sandbox, config := s.sandbox(t, "events")
	id := s.start(t, sandbox, config, "events", s.Once)
	s.ended(t, id)
	for _, want := range []runtimeapi.ContainerEventType{
		runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
	} {
		event, err := awaitEvent(events, id, want)
		if status.Code(err) == codes.Unimplemented {
			t.Log("the runtime sends no events")
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if uid := event.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "uid-events" {
			t.Errorf("event %s of a pod with uid %q", want, uid)
		}
	}
}

// received is an event of a runtime, or the end of its stream.
type received struct {
	event *runtimeapi.ContainerEventResponse
	err   error
}

func receive(stream runtimeapi.RuntimeService_GetContainerEventsClient, to chan<- received) {
	for {
		event, err := stream.Recv()
		to <- received{event, err}
		if err != nil {
			return
		}
	}
}

// awaitEvent waits for an event of a container, and ignores all others.
func awaitEvent(
	events <-chan received, id string, want runtimeapi.ContainerEventType,
) (*runtimeapi.ContainerEventResponse, error) {
	for patience := time.After(20 * time.Second); ; {
		select {
		case got := <-events:
			if got.err != nil || (got.event.GetContainerId() == id && got.event.GetContainerEventType() == want) {
				return got.event, got.err
			}
		case <-patience:
			return nil, fmt.Errorf("no event %s", want)
		}
	}
}

// contractLogs: each line of a log has a time, a stream, a tag and the text (kubelet: parseCRILog). A runtime reopens a
// log whose file was moved on request. podctl shows an unreadable line as an error of that log. Without
// ReopenContainerLog, logs are not rotated.
func contractLogs(t *testing.T, s *subject) {
	sandbox, config := s.sandbox(t, "logs")
	s.ended(t, s.start(t, sandbox, config, "output", s.Once))
	text, err := os.ReadFile(filepath.Join(s.LogDir, "output.log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(text) == 0 && !s.Silent {
		t.Error("the log is empty")
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(line, " ", 4)
		if len(parts) != 4 || (parts[1] != "stdout" && parts[1] != "stderr") || (parts[2] != "F" && parts[2] != "P") ||
			!strings.HasSuffix(line, "\n") {
			t.Errorf("the line %q", line)
			continue
		}
		if _, err := time.Parse(time.RFC3339Nano, parts[0]); err != nil {
			t.Error(err)
		}
	}
	id := s.start(t, sandbox, config, "rotated", s.Forever)
	path := filepath.Join(s.LogDir, "rotated.log")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runtime.ReopenContainerLog(t.Context(), &runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Error("the log is missing after it was reopened")
	}
}
