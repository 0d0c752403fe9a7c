package wait

import (
	"fmt"
	"strings"

	"github.com/podctl/podctl/runtime/model"
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
	// Completed: the pod has succeeded or failed. A pod that has failed is a *FailedError.
	Completed Goal = "completed"
)

// Deleted is the goal of a wait that makes no passes: the pod is gone.
const Deleted Goal = "deleted"

// conditionGoal begins a goal that is a condition of the pod's status:
// condition=Ready, condition=Ready=False.
const conditionGoal = "condition="

// BlockedError says that a wait cannot reach its goal.
type BlockedError struct {
	Pod    model.PodRef
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

// FailedError says that a pod, whose end was waited for, has failed.
type FailedError struct {
	Pod model.PodRef
	// Ending says how it has ended, and by which containers.
	Ending string
}

// Error says how the pod has ended.
func (e *FailedError) Error() string { return fmt.Sprintf("pod %s %s", e.Pod, e.Ending) }

// TimeoutError says that a wait ran out of its time.
type TimeoutError struct {
	Pod  model.PodRef
	Goal Goal
	// Missing is what the pod lacked when the time was over.
	Missing string
}

// Error says what was still missing.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("pod %s is not %s in time: %s", e.Pod, e.Goal, withoutPod(e.Missing, e.Pod))
}

// withoutPod leaves the name of a pod out of texts, joined by semicolons, that follow it.
func withoutPod(text string, ref model.PodRef) string {
	name := "pod " + ref.String() + ": "
	return strings.ReplaceAll(strings.TrimPrefix(text, name), "; "+name, "; ")
}
