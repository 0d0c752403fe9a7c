package containerd

import (
	"context"
	"fmt"
	"time"

	apievents "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/v2/core/events"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"
)

// Exit is the end of a container's first process.
type Exit struct {
	// ContainerID is the id of the container in the CRI.
	ContainerID string
	// Code is the exit code; 128 plus the signal if a signal ended the process.
	Code int32
	// At is when the process ended.
	At time.Time
	// OutOfMemory is set if the kernel killed a process of the container because its memory was used up.
	OutOfMemory bool
}

// WatchExits calls told for each container of the CRI whose first process ends, until the context ends or
// the stream breaks. containerd sends this event when its shim has reaped the process. Its CRI reports the
// container as exited only after it has cleaned up, some 30 to 150 ms later. A runtime other than
// containerd is a *NotContainerdError, which is an errors.ErrUnsupported.
func (s *Store) WatchExits(ctx context.Context, told func(Exit)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	filter := func(topic string) string { return fmt.Sprintf("namespace==%q,topic==%q", criNamespace, topic) }
	envelopes, broken := s.client.EventService().Subscribe(ctx, filter("/tasks/exit"), filter("/tasks/oom"))
	exits := exitReader{}
	for {
		select {
		case e := <-envelopes:
			if exit, ok := exits.read(e); ok {
				told(exit)
			}
		case err := <-broken:
			if err == nil {
				err = context.Cause(ctx)
			}
			return s.explain(errgrpc.ToNative(err))
		}
	}
}

// exitReader reads events. It has the ids of containers that ran out of memory and have not exited.
type exitReader map[string]bool

func (r exitReader) read(e *events.Envelope) (exit Exit, ok bool) {
	decoded, err := typeurl.UnmarshalAny(e.Event)
	if err != nil {
		return exit, false
	}
	switch event := decoded.(type) {
	case *apievents.TaskOOM:
		r[event.GetContainerID()] = true
	case *apievents.TaskExit:
		id := event.GetContainerID()
		if event.GetID() != id {
			// A process of an exec has ended.
			return exit, false
		}
		exit = Exit{ContainerID: id, Code: int32(event.GetExitStatus()), At: event.GetExitedAt().AsTime(), OutOfMemory: r[id]} //nolint:gosec // a code has 8 bits
		delete(r, id)
		return exit, true
	}
	return exit, false
}
