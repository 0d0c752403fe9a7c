package observe

import (
	"context"
	"errors"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/cri"
)

// Exits are the processes whose end containerd has reported and its CRI has not yet: while it cleans up,
// the CRI still has their containers as running. An observation shows them as exited, so that the next
// container starts without that wait. While nobody watches, there are none.
type Exits struct {
	client *cri.Client
	now    func() time.Time

	mu   sync.Mutex
	byID map[string]exit
}

type exit struct {
	containerd.Exit

	heard time.Time
}

// exitsKept is how long a report counts. The CRI needs less than a second to follow. If it does not
// follow at all, what it says counts again.
const exitsKept = time.Minute

// NewExits makes Exits of which nothing is known yet.
func NewExits(client *cri.Client, now func() time.Time) *Exits {
	return &Exits{client: client, now: now, byID: map[string]exit{}}
}

// Watch takes note of each container whose process ends, and calls told with its id, until the context
// ends or the connection breaks. With a runtime other than containerd it fails with an
// errors.ErrUnsupported.
func (x *Exits) Watch(ctx context.Context, told func(id string)) error {
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
		x.note(e)
		told(e.ContainerID)
	})
}

// note keeps a report, and forgets those that are too old.
func (x *Exits) note(e containerd.Exit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	for id, known := range x.byID {
		if now.Sub(known.heard).Abs() > exitsKept {
			delete(x.byID, id)
		}
	}
	x.byID[e.ContainerID] = exit{Exit: e, heard: now}
}

// complete shows a container that the CRI has as running as exited if its process has ended. Code, time and
// reason are those that containerd's CRI will have. It reports whether it did: the log may lack its end then.
func (x *Exits) complete(status *runtimeapi.ContainerStatus) bool {
	if x == nil || status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return false
	}
	x.mu.Lock()
	e, known := x.byID[status.GetId()]
	x.mu.Unlock()
	if !known || x.now().Sub(e.heard).Abs() > exitsKept {
		return false
	}
	status.State = runtimeapi.ContainerState_CONTAINER_EXITED
	status.ExitCode, status.FinishedAt, status.Reason = e.Code, e.At.UnixNano(), e.reason()
	return true
}

func (e *exit) reason() string {
	switch {
	case e.OutOfMemory:
		return "OOMKilled"
	case e.Code != 0:
		return "Error"
	}
	return "Completed"
}
