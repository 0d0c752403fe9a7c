package observe

import (
	"fmt"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// UIDTakenError says that a pod has the uid of another one. A uid names files, cgroups
// and records of the runtime, so the two would be taken for one.
type UIDTakenError struct {
	Pod   model.PodRef
	Owner model.PodRef
}

// Error names both pods and says what to do.
func (e *UIDTakenError) Error() string {
	return fmt.Sprintf("pod %s has the uid %q, which is that of pod %s: give it another metadata.uid, or delete pod %s first",
		e.Pod, e.Pod.UID, e.Owner, e.Owner)
}

// checkRecord refuses a pod whose uid podctl remembers for another one.
func checkRecord(ref model.PodRef, j *state.Checkpoint) error {
	if j.Pod.Name == "" || j.Pod.String() == ref.String() {
		return nil
	}
	return &UIDTakenError{Pod: ref, Owner: model.PodRef{Namespace: j.Pod.Namespace, Name: j.Pod.Name, UID: ref.UID}}
}

// checkLabels refuses a pod whose uid the runtime has on a sandbox or container of another
// one. What podctl itself remembers for the pod is its own, whatever its labels say: an
// older podctl let a manifest take another name.
func (o *Observer) checkLabels(ref model.PodRef, labels map[string]string) error {
	owner := model.PodRef{Namespace: labels[criconfig.LabelPodNamespace], Name: labels[criconfig.LabelPodName], UID: ref.UID}
	if owner.Name == "" || owner == ref || labels[criconfig.LabelPodUID] != string(ref.UID) {
		return nil
	}
	if j, err := o.layout.Pod(ref.UID).Checkpoint().Read(); err == nil && j.Pod.String() == ref.String() {
		return nil
	}
	return &UIDTakenError{Pod: ref, Owner: owner}
}

// labelled is what the runtime lists with labels.
type labelled interface{ GetLabels() map[string]string }

// CheckAllLabels is a *UIDTakenError when one of the records of a pod is another pod's.
func CheckAllLabels[T labelled](o *Observer, ref model.PodRef, items []T) error {
	for _, item := range items {
		if err := o.checkLabels(ref, item.GetLabels()); err != nil {
			return err
		}
	}
	return nil
}
