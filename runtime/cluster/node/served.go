package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/kubeletapi"
)

// servedPods are the pods of the node's server: those of the agent, and those that the agent does not get because they
// had ended before podctl ran. Clients can read their logs as long as a kubelet has left them.
type servedPods struct {
	kubeletapi.Agent

	// finished returns these other pods as the API server has them.
	finished func() []*v1.Pod
}

// Shown returns all pods.
func (s servedPods) Shown(ctx context.Context) ([]*podspec.Desired, error) {
	shown, err := s.Agent.Shown(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range s.finished() {
		shown = append(shown, podspec.NewFromCluster(pod))
	}
	return shown, nil
}

// List returns pods with their status, in the same order. A pod that had ended has the status in the API.
func (s servedPods) List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error) {
	found := map[types.UID]*v1.Pod{}
	for _, pod := range s.finished() {
		found[pod.UID] = pod
	}
	var kept []*podspec.Desired
	for _, d := range pods {
		if found[d.Pod.UID] == nil {
			kept = append(kept, d)
		}
	}
	var err error
	if len(kept) > 0 {
		var listed []*v1.Pod
		if listed, err = s.Agent.List(ctx, kept); listed == nil && err != nil {
			return nil, err
		}
		for _, pod := range listed {
			found[pod.UID] = pod
		}
	}
	all := make([]*v1.Pod, 0, len(pods))
	for _, d := range pods {
		if pod := found[d.Pod.UID]; pod != nil {
			all = append(all, pod)
		}
	}
	return all, err
}
