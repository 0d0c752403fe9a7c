package snapshot

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/planfile"
)

// Recording replaces a runtime by snapshots that were taken earlier, perhaps on another machine.
type Recording []*Pod

// Plan decides what a pass would do to the pod in the state of its snapshot.
func (r Recording) Plan(_ context.Context, desired *podspec.Desired, opts plan.Options) (*plan.Plan, error) {
	ref := model.RefOf(desired.Pod)
	s, err := r.find(ref)
	if err != nil {
		return nil, err
	}
	in := s.Input(ref, desired, opts)
	in.Observed.Others = r.others(ref)
	if hold, kept := in.Refused(); hold != nil {
		opts.Admission, opts.Refused = nil, hold
		in = s.Input(ref, kept, opts)
	}
	return planfile.Make(in), nil
}

// others returns the other pods of the recording that use resources of the node.
func (r Recording) others(ref model.PodRef) []model.Admitted {
	others := []model.Admitted{}
	for _, s := range r {
		if s.Checkpoint != nil && s.Pod.UID != ref.UID {
			if taken := TakenBy(&s.Checkpoint.Memory); taken != nil {
				others = append(others, *taken)
			}
		}
	}
	return others
}

// TakenBy returns the resources that a pod uses on the node, according to its memory. It returns nil for a pod that was
// not admitted or that has ended. A pod that is being stopped still uses them (kubelet: GetActivePods), and so does one
// that is being preempted, because a critical pod waits for its end.
func TakenBy(m *model.Memory) *model.Admitted {
	over := m.IsTerminal()
	preempted := m.Eviction != nil && m.Eviction.Preempted && !m.Eviction.Done
	if m.Applied == nil || m.Applied.Pod == nil || m.Rejection != nil || over && !preempted && !m.StillRuns() {
		return nil
	}
	taken := admission.TakenBy(m.Applied.Pod)
	taken.Terminating = over || m.Leaving() != nil
	return &taken
}

// List returns pods with their status at the time of their snapshots.
func (r Recording) List(_ context.Context, pods []*podspec.Desired) ([]*v1.Pod, error) {
	found := make([]*v1.Pod, 0, len(pods))
	for _, d := range pods {
		ref := model.RefOf(d.Pod)
		s, err := r.find(ref)
		if err != nil {
			return nil, err
		}
		found = append(found, s.Shown(s.Input(ref, d, plan.Options{})))
	}
	return found, nil
}

// Applied lists the applied manifests of the pods.
func (r Recording) Applied() []*podspec.Desired {
	var applied []*podspec.Desired
	for _, s := range r {
		if s.Checkpoint != nil && s.Checkpoint.Applied != nil && s.Checkpoint.Applied.Pod != nil {
			applied = append(applied, s.Checkpoint.Applied)
		}
	}
	return applied
}

// find returns the snapshot of a pod. A snapshot without a UID matches any pod.
func (r Recording) find(ref model.PodRef) (*Pod, error) {
	for _, s := range r {
		if s.Pod.UID == "" || s.Pod.UID == ref.UID {
			return s, nil
		}
	}
	return nil, fmt.Errorf("pod %s (uid %s) is not in the snapshot", ref, ref.UID)
}
