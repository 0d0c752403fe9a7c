package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// finished returns podctl's record of the end of a pod; nil if the pod has not finished. A pod with restartPolicy
// Always ends only by its deadline, because its source deletes it, or by an eviction.
func (p *Pod) finished() *model.Completion {
	memory := &p.Observed.Memory
	ends := memory.End != nil || memory.Eviction != nil
	forever := p.Manifest.Spec.RestartPolicy == v1.RestartPolicyAlways && !p.DeadlineExceeded() && !ends
	if forever || memory.Rejection != nil {
		return nil
	}
	return memory.Completion
}

// fromCheckpoint returns the status of a container of a finished pod without a record in the runtime. A kubelet keeps
// the status that it reported last (convertToAPIContainerStatuses). podctl keeps it in its checkpoint.
func (r *reporter) fromCheckpoint(ref podspec.ContainerRef) (v1.ContainerStatus, bool) {
	done := r.finished()
	if done == nil || ref.Type == podspec.Ephemeral {
		return v1.ContainerStatus{}, false
	}
	end, known := done.Containers[ref.Name]
	switch {
	case known:
	case done.Phase == v1.PodSucceeded:
		end = model.ContainerEnd{Reason: "Completed", StartedAt: done.At, FinishedAt: done.At}
	default:
		// The container never ran.
		return v1.ContainerStatus{}, false
	}
	s := v1.ContainerStatus{
		Name: ref.Name, Image: ref.Image, ContainerID: end.ID, RestartCount: end.Restarts,
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode:    end.ExitCode,
			Reason:      end.Reason,
			StartedAt:   metav1.NewTime(end.StartedAt),
			FinishedAt:  metav1.NewTime(end.FinishedAt),
			ContainerID: end.ID,
		}},
	}
	r.addReadiness(ref, nil, &s)
	return s, true
}

// Ends returns how the containers of a pod ended, by name, as far as the runtime has records of them.
func Ends(status *v1.PodStatus) map[string]model.ContainerEnd {
	ends := map[string]model.ContainerEnd{}
	for _, s := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if t := s.State.Terminated; t != nil && t.ContainerID != "" {
			ends[s.Name] = model.ContainerEnd{
				ID:         t.ContainerID,
				ExitCode:   t.ExitCode,
				Reason:     t.Reason,
				StartedAt:  t.StartedAt.Time,
				FinishedAt: t.FinishedAt.Time,
				Restarts:   s.RestartCount,
			}
		}
	}
	return ends
}
