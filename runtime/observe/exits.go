package observe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/cri"
)

// Exits are the processes whose end containerd has reported and its CRI has not. While containerd cleans up, the CRI
// still reports their containers as running. An observation shows them as exited, so that the next container starts
// without that wait.
//
// A report counts until the runtime reports the container as exited, or has no record of it. An overloaded runtime may
// take minutes for that. A process that has ended does not run again.
type Exits struct {
	client *cri.Client

	mu   sync.Mutex
	byID map[string]containerd.Exit
	// sweepAt is the number of reports at which the outdated ones are removed.
	sweepAt  int
	sweeping bool
}

// sweepMin is the smallest number of reports that is worth a list of the runtime's containers.
const sweepMin = 256

// NewExits returns Exits without reports.
func NewExits(client *cri.Client) *Exits {
	return &Exits{client: client, byID: map[string]containerd.Exit{}, sweepAt: sweepMin}
}

// Watch records each container whose process ends, and calls notify with its ID. It returns when the context ends or
// the connection breaks. With a runtime other than containerd it fails with errors.ErrUnsupported.
func (x *Exits) Watch(ctx context.Context, notify func(id string)) error {
	socket := x.client.Endpoint.Socket()
	if socket == "" {
		return errors.ErrUnsupported
	}
	store, err := containerd.OpenStore(socket)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // the stream has ended
	return store.WatchExits(ctx, func(e containerd.Exit) {
		x.note(ctx, e)
		notify(e.ContainerID)
	})
}

// note records a report. A sweep in another goroutine removes reports of containers that are not observed.
func (x *Exits) note(ctx context.Context, e containerd.Exit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byID[e.ContainerID] = e
	if len(x.byID) < x.sweepAt || x.sweeping {
		return
	}
	x.sweeping = true
	ids := slices.Collect(maps.Keys(x.byID))
	go x.sweep(ctx, ids)
}

// sweep removes the reports of containers that the runtime no longer reports as running. If the runtime does not
// answer, it keeps all.
func (x *Exits) sweep(ctx context.Context, ids []string) {
	running := runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}
	reply, err := x.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{State: &running},
	})
	there := map[string]bool{}
	for _, c := range reply.GetContainers() {
		there[c.GetId()] = true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range ids {
		if err == nil && !there[id] {
			delete(x.byID, id)
		}
	}
	x.sweepAt, x.sweeping = max(sweepMin, 2*len(x.byID)), false
}

// completed returns the status of a running container whose process has ended as exited; nil if it has not ended. Exit
// code, time and reason are those that containerd's CRI will report. The log may lack its end. A report that the CRI
// has caught up with is removed.
func (x *Exits) completed(status *runtimeapi.ContainerStatus) *runtimeapi.ContainerStatus {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e, known := x.byID[status.GetId()]
	if known && status.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
		delete(x.byID, status.GetId())
	}
	if !known || status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	ended := proto.CloneOf(status)
	ended.State = runtimeapi.ContainerState_CONTAINER_EXITED
	ended.ExitCode, ended.FinishedAt, ended.Reason = e.Code, e.At.UnixNano(), reasonOf(&e)
	return ended
}

// reasonOf returns the reason that containerd's CRI gives for an exit.
func reasonOf(e *containerd.Exit) string {
	switch {
	case e.OutOfMemory:
		return "OOMKilled"
	case e.Code != 0:
		return "Error"
	}
	return "Completed"
}
