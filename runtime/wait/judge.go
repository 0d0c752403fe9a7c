package wait

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// judge compares the pod's status with the goal.
func (w *podWait) judge(in *plan.Input, status *v1.PodStatus, p *plan.Plan) (bool, error) {
	w.missing = slices.Concat(w.otherFailures(p), p.WaitingFor)
	w.until = w.retryAt
	if held := blocking(p); len(held) > 0 {
		return false, w.blocked(strings.Join(slices.Concat(held, w.otherFailures(p)), "; "))
	}
	w.pending, w.over = p.Pending(), model.IsOver(status)
	if w.reached(status) {
		// The goal counts once nothing is left to do, such as stopping the sandbox of a finished pod or cleaning up
		// after an interrupted pass.
		if w.pending {
			return false, nil
		}
		return true, w.ended(status)
	}
	if status.Phase == v1.PodFailed || (status.Phase == v1.PodSucceeded && w.goal == Started) {
		return false, w.blocked("the pod " + Ending(status))
	}
	if err := w.finished(status, p); err != nil {
		return false, err
	}
	w.wakeForDeadline(status)
	for _, hold := range p.Holds {
		switch {
		case hold.Until != nil:
			w.wake(*hold.Until)
			until := hold.Until.Local().Format(time.TimeOnly)
			w.missing = append(w.missing, holder(&hold, ", ")+fmt.Sprintf("held until %s (%s)", until, hold.Message))
		default:
			if hold.Recheck > 0 {
				w.wake(w.on.now().Add(hold.Recheck))
			}
			w.missing = append(w.missing, hold.Message)
		}
	}
	if len(w.missing) == 0 {
		w.missing = unready(in, status)
	}
	return false, nil
}

// blocking returns the holds that no later pass ends.
func blocking(p *plan.Plan) []string {
	var texts []string
	for i := range p.Holds {
		if hold := &p.Holds[i]; hold.Blocking {
			texts = append(texts, holder(hold, ": ")+fmt.Sprintf("%s: %s", hold.Reason, hold.Message))
		}
	}
	return texts
}

// otherFailures returns the failures of the last pass that did not cause a hold.
func (r *retry) otherFailures(p *plan.Plan) []string {
	return slices.DeleteFunc(slices.Clone(r.trouble), func(text string) bool {
		return slices.ContainsFunc(p.Holds, func(h plan.Hold) bool {
			return h.Delay != nil && h.Delay.Cause != "" && strings.HasSuffix(text, h.Delay.Cause)
		})
	})
}

// finished checks containers that have ended for good and that the pod needs to be started or ready. A pod that waits
// for its other containers to end may still succeed, after an unknown time: it announces that it waits.
func (w *podWait) finished(status *v1.PodStatus, p *plan.Plan) error {
	if w.goal != Started && w.goal != Ready {
		return nil
	}
	failed, done := endedForGood(status, p)
	if w.goal == Ready && endless(w.desired.Pod) {
		failed = append(failed, done...)
	}
	if len(failed) > 0 {
		return w.blocked(strings.Join(failed, ", "))
	}
	if w.goal == Ready && len(done) > 0 {
		text := strings.Join(done, ", ") + ": the pod is ready only once all its containers have ended"
		w.missing = append(w.missing, text)
		w.announce(text)
	}
	return nil
}

// announce prints once that a wait may have no end.
func (w *podWait) announce(text string) {
	if w.announced != text {
		w.on.announce(fmt.Sprintf("pod %s: waiting: %s", model.RefOf(w.desired.Pod), text))
	}
	w.announced = text
}

// wake makes the wait check the pod again at that time at the latest.
func (w *podWait) wake(at time.Time) {
	if w.until.IsZero() || at.Before(w.until) {
		w.until = at
	}
}

func (w *podWait) wakeForDeadline(status *v1.PodStatus) {
	if deadline := w.desired.Pod.Spec.ActiveDeadlineSeconds; deadline != nil && status.StartTime != nil {
		w.wake(status.StartTime.Add(model.Seconds(*deadline)))
	}
}

// ended returns an error if the goal was the end of the pod and the pod has failed.
func (w *podWait) ended(status *v1.PodStatus) error {
	if w.goal != Completed || status.Phase != v1.PodFailed {
		return nil
	}
	return &FailedError{Pod: model.RefOf(w.desired.Pod), Ending: Ending(status)}
}

// holder returns the name of the held container; empty for a hold of the whole pod.
func holder(h *plan.Hold, then string) string {
	if h.Container == "" {
		return ""
	}
	return "container " + h.Container + then
}

func (w *podWait) blocked(reason string) error {
	return &BlockedError{Pod: model.RefOf(w.desired.Pod), Goal: w.goal, Reason: reason}
}

func (w *podWait) reached(status *v1.PodStatus) bool {
	switch w.goal {
	case Started:
		return status.Phase == v1.PodRunning && allStarted(w.desired.Pod, status)
	case Ready:
		return status.Phase == v1.PodSucceeded || isReady(status)
	case Completed:
		return model.IsOver(status)
	case Deleted:
		return false
	}
	return hasCondition(status, w.goal)
}

// allStarted reports whether every regular container and sidecar runs, or has already succeeded.
func allStarted(pod *v1.Pod, status *v1.PodStatus) bool {
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if ref, _ := podspec.FindContainer(pod, c.Name); ref.Type == podspec.Init {
			continue
		}
		over := c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		if !over && (c.Started == nil || !*c.Started) {
			return false
		}
	}
	return true
}

func isReady(status *v1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// unready describes what a pod lacks, why containers do not run, and the last messages of its probes.
func unready(in *plan.Input, status *v1.PodStatus) []string {
	missing := "phase " + string(status.Phase)
	for _, c := range status.Conditions {
		if c.Type == v1.PodReady && c.Message != "" {
			missing = c.Message
		}
	}
	return slices.Concat([]string{missing}, broken(status), unpassed(in))
}

// unpassed lists the probes that have not passed, with their messages.
func unpassed(in *plan.Input) []string {
	var texts []string
	for _, ref := range podspec.Containers(in.Desired.Pod) {
		probes := probesOf(in, ref.Name)
		for _, t := range model.ProbeTypes() {
			record, known := probes[t]
			if known && record.Result != model.ProbeSuccess && record.Message != "" {
				texts = append(texts, fmt.Sprintf("%s probe of %s: %s", t, ref.Name, record.Message))
			}
		}
	}
	return texts
}

// endedForGood lists the regular containers that have ended and do not start again according to the plan: those that
// failed, and those that succeeded. A rule that may restart all containers can start any of them again.
func endedForGood(status *v1.PodStatus, p *plan.Plan) (failed, done []string) {
	restartsAll := func(c v1.PodCondition) bool { return c.Type == v1.AllContainersRestarting }
	if slices.ContainsFunc(status.Conditions, restartsAll) {
		return nil, nil
	}
	for i := range status.ContainerStatuses {
		s := &status.ContainerStatuses[i]
		kept := slices.ContainsFunc(p.Keeps, func(k plan.Keep) bool { return k.Container == s.Name })
		if s.State.Terminated == nil || !kept {
			continue
		}
		code := s.State.Terminated.ExitCode
		text := fmt.Sprintf("container %s has %s and is not restarted", s.Name, exitText(s.State.Terminated))
		if code != 0 {
			failed = append(failed, text)
		} else {
			done = append(done, text)
		}
	}
	return failed, done
}

// endless reports whether a pod cannot succeed because one of its containers always restarts.
func endless(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool {
		if c.RestartPolicy != nil {
			return *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		}
		return pod.Spec.RestartPolicy == v1.RestartPolicyAlways
	})
}

// hasCondition reports whether the pod has the condition that a goal names.
func hasCondition(status *v1.PodStatus, goal Goal) bool {
	name, want, given := strings.Cut(strings.TrimPrefix(string(goal), conditionGoal), "=")
	if !given {
		want = string(v1.ConditionTrue)
	}
	for _, c := range status.Conditions {
		if strings.EqualFold(string(c.Type), name) && strings.EqualFold(string(c.Status), want) {
			return true
		}
	}
	return false
}
