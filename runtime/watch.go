package runtime

import (
	"context"
	"sync/atomic"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/plan"
)

// watch tells when something has happened to a pod's containers. Where the runtime
// sends events they are waited for; where it does not (containerd before 1.7) the
// pod is looked at, often at first and more seldom later.
type watch struct {
	happened chan struct{}
	// sends is set by the first event: from then on the runtime need not be asked.
	sends atomic.Bool
}

// The longest pause between two looks, with events and without.
const (
	silentWithEvents = 5 * time.Second
	silentWithout    = pauseMax
)

// watchPod begins to watch, until the context ends.
func (e *Engine) watchPod(ctx context.Context, ref plan.PodRef) *watch {
	w := &watch{happened: make(chan struct{}, 1)}
	stream, err := e.client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return w
	}
	go w.listen(stream, ref)
	return w
}

func (w *watch) listen(stream runtimeapi.RuntimeService_GetContainerEventsClient, ref plan.PodRef) {
	for {
		event, err := stream.Recv()
		if err != nil {
			w.sends.Store(false)
			return
		}
		w.sends.Store(true)
		if event.GetPodSandboxStatus().GetMetadata().GetUid() == string(ref.UID) {
			w.tell()
		}
	}
}

func (w *watch) tell() {
	select {
	case w.happened <- struct{}{}:
	default:
	}
}

// silence is the longest time without a look.
func (w *watch) silence() time.Duration {
	if w.sends.Load() {
		return silentWithEvents
	}
	return silentWithout
}

// next waits for something to happen, for as long as the pause at most.
func (w *watch) next(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.happened:
	case <-timer.C:
	}
	return nil
}
