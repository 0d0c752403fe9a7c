package wait

import (
	"context"
	"sync/atomic"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// activity reports events of a pod's containers. If the runtime does not send events (containerd before 1.7), the pod
// is polled, often at first and less often later.
type activity struct {
	happened chan struct{}
	// sends is set by the first event: from then on polling is not needed.
	sends atomic.Bool
}

// The longest pause between two polls, with events and without.
const (
	idlePauseWithEvents = 5 * time.Second
	idlePauseWithout    = pauseMax
)

// watchPod follows the events of a pod until the context ends.
func (x *Waiter) watchPod(ctx context.Context, ref model.PodRef) *activity {
	w := &activity{happened: make(chan struct{}, 1)}
	stream, err := x.client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return w
	}
	go w.listen(stream, ref)
	return w
}

func (w *activity) listen(stream runtimeapi.RuntimeService_GetContainerEventsClient, ref model.PodRef) {
	for {
		event, err := stream.Recv()
		if err != nil {
			w.sends.Store(false)
			return
		}
		w.sends.Store(true)
		if event.GetPodSandboxStatus().GetMetadata().GetUid() == string(ref.UID) {
			w.note()
		}
	}
}

func (w *activity) note() { sleep.Wake(w.happened) }

// first returns the pause before the first poll. It is long for a runtime that sends events.
func (w *activity) first() time.Duration {
	if w.sends.Load() {
		return idlePauseWithEvents
	}
	return pauseMin
}

// after returns the pause that follows another. Without events each is an eighth longer, so that a pause is about an
// eighth of the whole wait. A change is seen with that delay at most, and a long wait needs few polls.
func (w *activity) after(pause time.Duration) time.Duration {
	if w.sends.Load() {
		return min(2*pause, idlePauseWithEvents)
	}
	return min(pause+pause/8, idlePauseWithout)
}

// next waits for an event, at most for the pause. It reports whether the runtime sent an event.
func (w *activity) next(ctx context.Context, pause time.Duration) (happened bool, err error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-w.happened:
		return true, nil
	case <-timer.C:
		return false, nil
	}
}
