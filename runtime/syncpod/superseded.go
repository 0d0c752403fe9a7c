package syncpod

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Superseded reports whether podctl's own copy of a manifest is outdated. Such a copy must neither undo a change by
// another process nor recreate a deleted pod.
func Superseded(ref model.PodRef, desired *podspec.Desired, j *state.Checkpoint) error {
	switch {
	case desired == nil || !desired.Stored:
		return nil
	case j.Applied == nil:
		return &SupersededError{Pod: ref, Deleted: true}
	case j.Deletion != nil:
		return &SupersededError{Pod: ref, Deleting: true}
	case !j.Applied.SameManifest(desired):
		return &SupersededError{Pod: ref}
	}
	return nil
}

// SupersededError reports that another process changed or deleted the pod during a wait.
type SupersededError struct {
	Pod model.PodRef
	// Deleted reports whether the pod is gone.
	Deleted bool
	// Deleting reports whether its deletion has begun and was not finished.
	Deleting bool
}

// Error describes what happened.
func (e *SupersededError) Error() string {
	if e.Deleted {
		return fmt.Sprintf("pod %s was deleted by another podctl meanwhile, and stays deleted", e.Pod)
	}
	if e.Deleting {
		return fmt.Sprintf("pod %s: its deletion is not finished: "+
			"podctl delete %s finishes it, podctl apply of its manifest cancels it",
			e.Pod, e.Pod)
	}
	return fmt.Sprintf("pod %s was changed by another podctl meanwhile, and that change is kept", e.Pod)
}
