package runtime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
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
		return because("ResizePodInPlaceError", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.journal.Actuated.Containers == nil {
		x.journal.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	x.journal.Actuated.Containers[ref.Name] = ref.Resources
	return nil
}

// removeLogs removes the logs of a container that left the manifest, and of one that
// never ran: a start that was cut off may have opened one. Those of a
// container that runs on under its name are kept: they carry its restart count
// and are what `logs --previous` shows.
func (x *execution) removeLogs(s *plan.Step) error {
	if s.Reason != plan.RemovedFromSpec && s.Reason != plan.SandboxReplaced && s.Reason != plan.NeverStarted {
		return nil
	}
	pod := x.plan.Pod
	return x.e.layout.Pod(pod.UID).RemoveLogs(pod.Namespace, pod.Name, s.Container, s.ContainerID, s.Attempt)
}

// removeLastWords removes the file for the termination message of a record that goes.
func (x *execution) removeLastWords(s *plan.Step) error {
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	goes := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		if c.Status.GetId() == s.ContainerID {
			mountedBy(goes, c.Status)
		}
	}
	return pod.RemoveTerminationLogs(s.Container, func(path string) bool { return goes[path] })
}

// removeUnusedLastWords removes the files for termination messages of a container that no
// record has: those of starts that were killed before there was one.
func (x *execution) removeUnusedLastWords(container string) error {
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	used := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		mountedBy(used, c.Status)
	}
	return pod.RemoveTerminationLogs(container, func(path string) bool { return !used[path] })
}

// mountedBy notes what is mounted into a container.
func mountedBy(paths map[string]bool, status *runtimeapi.ContainerStatus) {
	for _, m := range status.GetMounts() {
		paths[m.GetHostPath()] = true
	}
}
