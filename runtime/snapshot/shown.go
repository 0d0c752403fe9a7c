package snapshot

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Shown returns the pod as commands print it: its manifest with debug containers added since, its status, and the mark
// of a deletion. A pod of the API server has the conditions that the API has or gets, if these are known.
func (s *Pod) Shown(in *plan.Input) *v1.Pod {
	notes := make([]map[string]string, 0, len(s.Containers))
	for _, c := range s.Containers {
		notes = append(notes, c.Status.GetAnnotations())
	}
	in.Desired = WithDebug(in.Desired, notes)
	pod := in.Desired.Pod.DeepCopy()
	in.Desired.MarkSource(pod)
	pod.Status = podstatus.Of(in.State())
	if c := in.Cluster; c != nil && c.Conditions != nil {
		merge := podstatus.ConditionMerge{Pod: pod, API: c.Conditions, Generation: c.Generation}
		merge.Ends = model.IsOver(&pod.Status)
		pod.Status.Conditions = merge.Merge(&pod.Status)
	}
	if s.Checkpoint != nil {
		s.Checkpoint.Leaving().Mark(pod)
	}
	return pod
}

// WithDebug returns a manifest with the debug containers that are defined in the annotations of the pod's containers.
func WithDebug(desired *podspec.Desired, annotations []map[string]string) *podspec.Desired {
	var added []v1.EphemeralContainer
	for _, a := range annotations {
		var definition v1.EphemeralContainer
		text := a[criconfig.AnnotationDebug]
		if text == "" || json.Unmarshal([]byte(text), &definition) != nil {
			continue
		}
		if _, known := podspec.FindContainer(desired.Pod, definition.Name); !known {
			added = append(added, definition)
		}
	}
	if len(added) == 0 {
		return desired
	}
	return desired.AlsoRunning(added)
}
