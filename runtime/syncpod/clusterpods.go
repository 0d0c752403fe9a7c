package syncpod

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// ClusterPodError reports that the API server owns a pod. Only the agent and the commands that leave the object as it
// is make passes over such a pod.
type ClusterPodError struct {
	Pod model.PodRef
	// Deletes reports that the refused pass would delete the pod.
	Deletes bool
}

// Error names the kubectl command for the change.
func (e *ClusterPodError) Error() string {
	verb := "edit"
	if e.Deletes {
		verb = "delete"
	}
	return fmt.Sprintf("pod %s belongs to the API server: run `kubectl -n %s %s pod %s`",
		e.Pod, e.Pod.Namespace, verb, e.Pod.Name)
}

// refuseClusterPod returns an error if a pass concerns a pod of the API server. A nil manifest is a deletion.
func refuseClusterPod(ref model.PodRef, desired *podspec.Desired, c *state.Checkpoint) error {
	owned := desired != nil && desired.FromCluster() || c.Applied != nil && c.Applied.FromCluster()
	if !owned {
		return nil
	}
	return &ClusterPodError{Pod: ref, Deletes: desired == nil}
}
