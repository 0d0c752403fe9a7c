package wait

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// TestPausesFollowTheWait checks that the delay of a change is a small part of the wait, and that a long wait needs few
// polls.
func TestPausesFollowTheWait(t *testing.T) {
	var w activity
	var waited time.Duration
	looks := 0
	for pause := w.first(); waited < 10*time.Second; pause = w.after(pause) {
		if limit := pauseMin + waited/7; pause > limit {
			t.Errorf("after %v the pause is %v, more than %v", waited, pause, limit)
		}
		waited += pause
		looks++
	}
	if looks > 60 {
		t.Errorf("%d looks in ten seconds", looks)
	}
}

// TestEventsReplacePolling checks that a runtime that sends events is polled rarely, in case one is lost, and soon
// after an event that shows no change yet.
func TestEventsReplacePolling(t *testing.T) {
	w := activity{happened: make(chan struct{}, 1)}
	w.sends.Store(true)
	if pause := w.first(); pause != idlePauseWithEvents {
		t.Errorf("the first observation comes after %v", pause)
	}
	w.note()
	if reported, err := w.next(t.Context(), time.Hour); !reported || err != nil {
		t.Errorf("notified %v, error %v", reported, err)
	}
	if reported, err := w.next(t.Context(), time.Nanosecond); reported || err != nil {
		t.Errorf("after nothing happened: notified %v, error %v", reported, err)
	}
}

// stream sends events and then ends.
type stream struct {
	runtimeapi.RuntimeService_GetContainerEventsClient
	uids []string
}

// Recv returns the next event.
func (s *stream) Recv() (*runtimeapi.ContainerEventResponse, error) {
	if len(s.uids) == 0 {
		return nil, io.EOF
	}
	uid := s.uids[0]
	s.uids = s.uids[1:]
	return &runtimeapi.ContainerEventResponse{
		PodSandboxStatus: &runtimeapi.PodSandboxStatus{Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid}},
	}, nil
}

// TestEventsOfOtherPods checks that only events of the pod count, that several at a time count as one, and that the
// runtime is polled again when they end.
func TestEventsOfOtherPods(t *testing.T) {
	for want, uids := range map[int][]string{0: {"other"}, 1: {"other", "own", "own"}} {
		w := activity{happened: make(chan struct{}, 1)}
		w.listen(&stream{uids: uids}, model.PodRef{UID: "own"})
		if len(w.happened) != want || w.sends.Load() {
			t.Errorf("%v: notified %d times, sends %t", uids, len(w.happened), w.sends.Load())
		}
	}
}

// TestEventsShortenPauses checks that pauses are long while events are sent, and short otherwise.
func TestEventsShortenPauses(t *testing.T) {
	var w activity
	if pause := w.after(time.Hour); pause != idlePauseWithout {
		t.Errorf("without events the longest pause is %v", pause)
	}
	w.sends.Store(true)
	if pause := w.after(pauseMin); pause != 2*pauseMin {
		t.Errorf("after an event the pause is %v", pause)
	}
	if pause := w.after(time.Hour); pause != idlePauseWithEvents {
		t.Errorf("with events the longest pause is %v", pause)
	}
}

// TestWatchesWithoutEvents checks that a runtime without events is polled.
func TestWatchesWithoutEvents(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w := l.watchPod(ctx, model.PodRef{UID: "own"})
	if reported, err := w.next(ctx, time.Millisecond); reported || err != nil || w.sends.Load() {
		t.Errorf("notified %t, %v", reported, err)
	}
	ended := errors.New("interrupted")
	cancel(ended)
	if _, err := w.next(ctx, time.Hour); !errors.Is(err, ended) {
		t.Errorf("error %v", err)
	}
}
