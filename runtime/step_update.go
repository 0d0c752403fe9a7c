package runtime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// updateContainer changes cpu and memory of a running container, and keeps that
// they were changed.
func (x *execution) updateContainer(ctx context.Context, s *plan.Step) error {
	ref, err := x.container(s)
	if err != nil {
		return err
	}
	_, err = x.e.client.UpdateContainerResources(context.WithoutCancel(ctx), &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: s.ContainerID, Linux: criconfig.Resources(x.desired.Pod, ref, x.e.node()),
	})
	if err != nil {
		return because(model.ResizePodInPlaceError, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.journal.Actuated.Containers == nil {
		x.journal.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	x.journal.Actuated.Containers[ref.Name] = ref.Resources
	return nil
}
