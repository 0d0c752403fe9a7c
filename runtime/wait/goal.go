package wait

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/runtime/model"
)

// Goal is the state at which a wait ends.
type Goal string

// The goals of a wait.
const (
	// Started: every regular container and sidecar runs and has passed its startup probe, or has already succeeded.
	Started Goal = "started"
	// Ready: the pod's condition Ready is true. A pod that has succeeded counts.
	Ready Goal = "ready"
	// Completed: the pod has succeeded or failed. A failed pod is a *FailedError.
	Completed Goal = "completed"
)

// Deleted means that the pod is gone. This wait makes no passes.
const Deleted Goal = "deleted"

// conditionGoal begins a goal that is a condition of the pod's status: condition=Ready, condition=Ready=False.
const conditionGoal = "condition="

// BlockedError reports that a wait cannot reach its goal.
type BlockedError struct {
	Pod    model.PodRef
	Goal   Goal
	Reason string
	Err    error
}

// Error names the pod, the goal and the reason.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("pod %s cannot become %s: %s", e.Pod, e.Goal, withoutPod(e.Reason, e.Pod))
}

// Unwrap returns the cause.
func (e *BlockedError) Unwrap() error { return e.Err }

// FailedError reports that a pod has failed after a wait for its end.
type FailedError struct {
	Pod model.PodRef
	// Ending describes how the pod ended, and the containers that failed.
	Ending string
}

// Error describes how the pod ended.
func (e *FailedError) Error() string { return fmt.Sprintf("pod %s %s", e.Pod, e.Ending) }

// TimeoutError reports that a wait reached its timeout.
type TimeoutError struct {
	Pod  model.PodRef
	Goal Goal
	// Missing describes what the pod lacked at the timeout.
	Missing string
}

// Error describes what was missing.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("pod %s is not %s in time: %s", e.Pod, e.Goal, withoutPod(e.Missing, e.Pod))
}

// withoutPod removes the name of a pod from texts, joined by semicolons, that follow it.
func withoutPod(text string, ref model.PodRef) string {
	name := "pod " + ref.String() + ": "
	return strings.ReplaceAll(strings.TrimPrefix(text, name), "; "+name, "; ")
}
