package containerd

import (
	"context"
	"fmt"
	"time"

	apievents "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/events"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"
)

// Exit is the exit of a container's first process.
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

// WatchExits calls notify for each container of the CRI whose first process exits, until the context ends or the stream
// breaks. containerd sends this event when its shim has reaped the process. Its CRI reports the exit only after it has
// cleaned up: usually 30 to 150 ms later, on an overloaded machine minutes later. Therefore WatchExits also reports
// processes that exited before the call and that containerd has not cleaned up. For another runtime the error is a
// *NotContainerdError, which is an errors.ErrUnsupported.
func (s *Store) WatchExits(ctx context.Context, notify func(Exit)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	filter := func(topic string) string { return fmt.Sprintf("namespace==%q,topic==%q", criNamespace, topic) }
	envelopes, broken := s.client.EventService().Subscribe(ctx, filter("/tasks/exit"), filter("/tasks/oom"))
	exits, earlier := exitReader{}, make(chan []Exit, 1)
	// known holds the exits reported by an event before the list of earlier exits arrives. The event has more details.
	known := map[string]bool{}
	go func() { earlier <- s.stopped(ctx) }()
	for {
		select {
		case list := <-earlier:
			for _, exit := range list {
				if !known[exit.ContainerID] {
					notify(exit)
				}
			}
			known, earlier = nil, nil
		case e := <-envelopes:
			if exit, ok := exits.read(e); ok {
				if known != nil {
					known[exit.ContainerID] = true
				}
				notify(exit)
			}
		case err := <-broken:
			if err == nil {
				err = context.Cause(ctx)
			}
			return s.explain(errgrpc.ToNative(err))
		}
	}
}

// stopped returns the tasks whose first process has exited and that containerd still has. If containerd does not
// answer, it returns none: the CRI reports them later.
func (s *Store) stopped(ctx context.Context) []Exit {
	reply, err := s.client.TaskService().List(namespaces.WithNamespace(ctx, criNamespace), &tasks.ListTasksRequest{})
	if err != nil {
		return nil
	}
	var exits []Exit
	for _, t := range reply.GetTasks() {
		if t.GetStatus() == task.Status_STOPPED && t.GetExitedAt().AsTime().Unix() > 0 {
			exits = append(exits, Exit{
				ContainerID: t.GetID(),
				Code:        int32(t.GetExitStatus()), // a code has 8 bits
				At:          t.GetExitedAt().AsTime(),
			})
		}
	}
	return exits
}

// exitReader reads events. It holds the ids of containers that ran out of memory and have not exited.
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
			// A process of an exec has exited.
			return exit, false
		}
		exit = Exit{
			ContainerID: id,
			Code:        int32(event.GetExitStatus()), // a code has 8 bits
			At:          event.GetExitedAt().AsTime(),
			OutOfMemory: r[id],
		}
		delete(r, id)
		return exit, true
	}
	return exit, false
}
