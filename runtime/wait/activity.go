package wait

import (
	"context"
	"sync/atomic"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// activity reports when something has happened to a pod's containers. Where the runtime
// sends events they are waited for; where it does not (containerd before 1.7) the
// pod is looked at, often at first and more seldom later.
type activity struct {
	happened chan struct{}
	// sends is set by the first event: from then on the runtime need not be asked.
	sends atomic.Bool
}

// The longest pause between two looks, with events and without.
const (
	silentWithEvents = 5 * time.Second
	silentWithout    = pauseMax
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

func (w *activity) note() {
	select {
	case w.happened <- struct{}{}:
	default:
	}
}

// first is the pause before the first look: a runtime that sends events need not be asked.
func (w *activity) first() time.Duration {
	if w.sends.Load() {
		return silentWithEvents
	}
	return pauseMin
}

// after is the pause that follows another. Without events each is longer by an eighth,
// which makes it about an eighth of the whole wait: by so much at most a change is seen
// late, and a long wait takes few looks.
func (w *activity) after(pause time.Duration) time.Duration {
	if w.sends.Load() {
		return min(2*pause, silentWithEvents)
	}
	return min(pause+pause/8, silentWithout)
}

// next waits for something to happen, for as long as the pause at most. It reports whether
// the runtime sent an event.
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
