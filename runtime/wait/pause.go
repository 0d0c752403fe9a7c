package wait

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
)

// pause waits until something has changed: a container's state, the end of a hold, or a probe that is due.
func (w *podWait) pause(ctx context.Context) error {
	again := w.nextObservation()
	for pause := w.activity.first(); ; pause = w.activity.after(pause) {
		happened, err := w.activity.next(ctx, max(min(pause, again.Sub(w.on.now())), time.Millisecond))
		if err != nil {
			return err
		}
		if happened {
			// The runtime's records may show the change a moment later.
			pause = pauseMin
		}
		if !w.on.now().Before(again) {
			return nil
		}
		seen, err := w.look(ctx)
		if err != nil {
			return err
		}
		if seen != w.seen {
			w.in = nil
			return nil
		}
	}
}

// nextObservation returns when the whole pod is checked again, whatever its containers do: a probe is due, a hold ends,
// or an event may be missing.
func (w *podWait) nextObservation() time.Time {
	patience := min(probePeriod(w.desired.Pod), 10*time.Second)
	starting := func(c model.Container) bool { return c.Starting }
	if w.in != nil && slices.ContainsFunc(w.in.Observed.Containers, starting) {
		// The runtime sends no event when a hook has finished.
		patience = min(patience, pauseMax)
	}
	if w.goal == Deleted {
		// The end of a deletion is not an event of a container.
		patience = 200 * time.Millisecond
	}
	again := w.on.now().Add(patience)
	if !w.until.IsZero() && w.until.Before(again) {
		return w.until
	}
	return again
}

// probePeriod returns the shortest period of the pod's probes, at most a second, because probes may wait for a delay.
func probePeriod(pod *v1.Pod) time.Duration {
	period := time.Hour
	for _, ref := range podspec.Containers(pod) {
		for _, t := range model.ProbeTypes() {
			if p := model.ProbeOf(ref.Container, t); p != nil {
				period = min(period, model.Seconds(p.PeriodSeconds), time.Second)
			}
		}
	}
	return period
}

// look shows with one cheap call whether any container changed its state.
func (w *podWait) look(ctx context.Context) (string, error) {
	list, err := w.on.observer.ListContainers(ctx, model.RefOf(w.desired.Pod))
	if err != nil {
		return "", err
	}
	var states []string
	for _, c := range list {
		states = append(states, c.GetId()+string(snapshot.ContainerState(c.GetState())))
	}
	slices.Sort(states)
	return strings.Join(states, ","), nil
}

// fingerprint returns the result of look for an observation.
func fingerprint(o *model.Observed) string {
	var states []string
	for i := range o.Containers {
		states = append(states, o.Containers[i].ID+string(o.Containers[i].State))
	}
	slices.Sort(states)
	return strings.Join(states, ",")
}
