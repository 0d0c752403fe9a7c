package wait

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
)

// pause waits until something has changed: a container's state, a hold that ran
// out, or a probe whose period has passed.
func (w *waiter) pause(ctx context.Context) error {
	again := w.nextLook()
	for pause := w.watch.first(); ; pause = w.watch.after(pause) {
		told, err := w.watch.next(ctx, max(min(pause, again.Sub(w.on.now())), time.Millisecond))
		if err != nil {
			return err
		}
		if told {
			// What an event tells of may show a moment later.
			pause = pauseMin
		}
		if !w.on.now().Before(again) {
			return nil
		}
		seen, err := w.look(ctx)
		if err != nil || seen != w.seen {
			return err
		}
	}
}

// nextLook is when the whole pod is looked at again, whatever its containers do: a
// probe is due, a hold runs out, or nobody would tell.
func (w *waiter) nextLook() time.Time {
	patience := min(w.probePeriod(), 10*time.Second)
	if w.hook {
		// No event tells that the hook has finished.
		patience = min(patience, pauseMax)
	}
	if w.goal == Deleted {
		// The end of a deletion is no container's.
		patience = 200 * time.Millisecond
	}
	again := w.on.now().Add(patience)
	if !w.until.IsZero() && w.until.Before(again) {
		return w.until
	}
	return again
}

// probePeriod is how long the shortest period of the pod's probes is; probes
// that wait for a delay are looked at every second.
func (w *waiter) probePeriod() time.Duration {
	period := time.Hour
	for _, ref := range podspec.Containers(w.desired.Pod) {
		for _, t := range model.ProbeTypes() {
			if p := model.ProbeOf(ref.Container, t); p != nil {
				period = min(period, model.Seconds(p.PeriodSeconds), time.Second)
			}
		}
	}
	return period
}

// look is one cheap call that shows whether any container changed its state.
func (w *waiter) look(ctx context.Context) (string, error) {
	list, err := w.on.observer.ListContainers(ctx, model.RefOf(w.desired.Pod))
	if err != nil {
		return "", err
	}
	var states []string
	for _, c := range list {
		states = append(states, c.GetId()+c.GetState().String())
	}
	slices.Sort(states)
	return strings.Join(states, ","), nil
}

// noteSeen keeps what a look at the pod's containers showed.
func (w *waiter) noteSeen(s *snapshot.Pod) {
	w.seen = fingerprint(s)
	w.hook = slices.ContainsFunc(s.Containers, func(c snapshot.Container) bool { return c.Starting })
}

// fingerprint is what look would have shown of a snapshot's containers; of unmanaged ones it
// shows nothing.
func fingerprint(s *snapshot.Pod) string {
	var states []string
	for _, c := range s.Containers {
		if c.IsUnmanaged() {
			continue
		}
		states = append(states, c.Status.GetId()+c.Status.GetState().String())
	}
	slices.Sort(states)
	return strings.Join(states, ",")
}
