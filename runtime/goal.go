package runtime

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
)

// Goal is what a wait ends with.
type Goal string

// The goals of a wait.
const (
	// Started: every regular container and sidecar runs and has passed its
	// startup probe, or has ended well before anybody looked.
	Started Goal = "started"
	// Ready: the pod's condition Ready is true. A pod that has succeeded counts.
	Ready Goal = "ready"
	// CompletedGoal: the pod has succeeded or failed.
	CompletedGoal Goal = "completed"
)

// Deleted is the goal of a wait that makes no passes: the pod is gone.
const Deleted Goal = "deleted"

// conditionGoal begins a goal that is a condition of the pod's status:
// condition=Ready, condition=Ready=False.
const conditionGoal = "condition="

// BlockedError says that a wait cannot reach its goal.
type BlockedError struct {
	Pod    plan.PodRef
	Goal   Goal
	Reason string
	Err    error
}

// Error says which pod cannot become what, and why.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("pod %s cannot become %s: %s", e.Pod, e.Goal, withoutPod(e.Reason, e.Pod))
}

// Unwrap returns the cause.
func (e *BlockedError) Unwrap() error { return e.Err }

// TimeoutError says that a wait ran out of its time.
type TimeoutError struct {
	Pod     plan.PodRef
	Goal    Goal
	Waiting string
}

// Error says what was still missing.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("pod %s is not %s in time: %s", e.Pod, e.Goal, withoutPod(e.Waiting, e.Pod))
}

// withoutPod leaves the name of a pod out of a text that follows it.
func withoutPod(text string, ref plan.PodRef) string {
	return strings.TrimPrefix(text, "pod "+ref.String()+": ")
}

// SupersededError says that another process changed or deleted the pod while
// this one waited.
type SupersededError struct {
	Pod plan.PodRef
	// Deleted tells that the pod is gone.
	Deleted bool
	// Deleting tells that its deletion has begun and was not finished.
	Deleting bool
}

// Error says what happened.
func (e *SupersededError) Error() string {
	if e.Deleted {
		return fmt.Sprintf("pod %s was deleted by another podctl meanwhile, and stays so", e.Pod)
	}
	if e.Deleting {
		return fmt.Sprintf("pod %s: its deletion was not finished: podctl delete %s finishes it, podctl apply of its manifest takes it back",
			e.Pod, e.Pod)
	}
	return fmt.Sprintf("pod %s was changed by another podctl meanwhile, and stays as that one made it", e.Pod)
}

func (w *waiter) reached(status *v1.PodStatus) bool {
	switch w.goal {
	case Started:
		return status.Phase == v1.PodRunning && allStarted(w.desired.Pod, status)
	case Ready:
		return status.Phase == v1.PodSucceeded || isReady(status)
	case CompletedGoal:
		return isOver(status)
	case Deleted:
		return false
	}
	return hasCondition(status, w.goal)
}

func isOver(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}

// Ending says how a pod that is over has ended, and by which containers.
func Ending(status *v1.PodStatus) string {
	return "has ended as " + string(status.Phase) + exitCodes(status)
}

// allStarted tells that every regular container and sidecar runs, or has run to its end
// before anybody looked.
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

// unready says what a pod lacks, and what its probes said last.
func unready(in *plan.Input, status *v1.PodStatus) []string {
	for _, c := range status.Conditions {
		if c.Type == v1.PodReady && c.Message != "" {
			return append([]string{c.Message}, unpassed(in)...)
		}
	}
	return []string{"phase " + string(status.Phase)}
}

// unpassed are the probes that have not passed, with what was said.
func unpassed(in *plan.Input) []string {
	var texts []string
	for _, ref := range podspec.Containers(in.Desired.Pod) {
		newest := in.Observed.Newest(func(c *plan.Container) bool { return c.Name == ref.Name })
		if newest == nil {
			continue
		}
		for _, t := range plan.ProbeTypes() {
			record, asked := in.Observed.Journal.Probes[newest.ID][t]
			if asked && record.Result != plan.ProbeSuccess && record.Message != "" {
				texts = append(texts, fmt.Sprintf("%s probe of %s: %s", t, ref.Name, record.Message))
			}
		}
	}
	return texts
}

// endedForGood says which regular containers have ended and are not started again, as a plan
// sees it: those that failed, and those that have done their work. A rule that may
// restart all containers brings back any of them.
func endedForGood(status *v1.PodStatus, p *plan.Plan) (failed, done []string) {
	if slices.ContainsFunc(status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.AllContainersRestarting }) {
		return nil, nil
	}
	for i := range status.ContainerStatuses {
		s := &status.ContainerStatuses[i]
		kept := slices.ContainsFunc(p.Keeps, func(k plan.Keep) bool { return k.Container == s.Name })
		if s.State.Terminated == nil || !kept {
			continue
		}
		code := s.State.Terminated.ExitCode
		text := fmt.Sprintf("container %s has exited %d and does not run again", s.Name, code)
		if code != 0 {
			failed = append(failed, text)
		} else {
			done = append(done, text)
		}
	}
	return failed, done
}

// endless tells that a pod cannot succeed, as one of its containers is always restarted.
func endless(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool {
		if c.RestartPolicy != nil {
			return *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		}
		return pod.Spec.RestartPolicy == v1.RestartPolicyAlways
	})
}

// hasCondition tells that the pod has the condition that a goal names.
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
