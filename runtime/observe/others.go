package observe

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// takenPorts lists the ports that a pod needs on the node and that a process, another pod or a Service has. Processes
// count only for ports that the sandbox publishes: containers on the node's network report themselves that a port is in
// use, and may share it. While the pod itself is on the node's network, the process may be its own, which ends before
// the port is published. A pod without such ports costs nothing.
func (o *Observer) takenPorts(pod *v1.Pod, s *snapshot.Pod) map[string]string {
	wanted := podspec.HostPorts(pod)
	if len(wanted) == 0 {
		return nil
	}
	others, publishes := o.publishedByOthers(pod), !pod.Spec.HostNetwork && !onNodeNetwork(s)
	taken := map[string]string{}
	for _, port := range wanted {
		for _, other := range others {
			if port.Collides(other.Port) {
				taken[port.String()] = other.by
			}
		}
		if !publishes {
			continue
		}
		if by := machine.Owner(port, o.world.Reserved); by != "" {
			taken[port.String()] = by
		}
	}
	return taken
}

// onNodeNetwork reports whether the pod runs on the node's network.
func onNodeNetwork(s *snapshot.Pod) bool {
	return slices.ContainsFunc(s.Sandboxes, func(box *runtimeapi.PodSandboxStatus) bool {
		return box.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY &&
			box.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
	})
}

type publishedPort struct {
	podspec.Port
	// by names the pod or Service that publishes it.
	by string
}

// publishedByOthers lists the ports of unfinished pods that podctl applied and that have a sandbox or are about to get
// one. It leaves out pods with an unreadable checkpoint: their ports are unknown, and a collision destroys nothing, so
// they hold no other pod.
func (o *Observer) publishedByOthers(pod *v1.Pod) []publishedPort {
	applied, _, err := state.Applied(o.world.Layout)
	if err != nil {
		return nil
	}
	var ports []publishedPort
	for _, a := range applied {
		if a.Desired.Pod.UID == pod.UID || a.Checkpoint.Completion != nil || !hasSandbox(a.Checkpoint) {
			continue
		}
		for _, p := range podspec.HostPorts(a.Desired.Pod) {
			ports = append(ports, publishedPort{p, "pod " + model.RefOf(a.Desired.Pod).String()})
		}
	}
	return append(ports, o.publishedByServices()...)
}

// publishedByServices lists the ports of the node that lead to Services.
func (o *Observer) publishedByServices() []publishedPort {
	if o.world.Objects == nil {
		return nil
	}
	var ports []publishedPort
	// Unreadable Services are left out, like unreadable checkpoints.
	services, _ := o.world.Objects.Services()
	for _, s := range services {
		for _, p := range service.Published(s) {
			ports = append(ports, publishedPort{p, "service " + s.Namespace + "/" + s.Name})
		}
	}
	return ports
}

// hasSandbox reports whether the last pass left a sandbox, or an unfinished or failed pass was about to create one.
func hasSandbox(j *state.Checkpoint) bool {
	_, begun := j.InFlight[state.ThePod]
	return begun || (j.LastRun != nil && j.LastRun.Sandbox != "")
}

// Others returns the other pods of the state directory that use resources of the node. A pod with an unreadable
// checkpoint does not block others.
func (o *Observer) Others(ref model.PodRef) ([]model.Admitted, error) {
	all, err := o.taken.All()
	if err != nil {
		return nil, fmt.Errorf("pod %s: reading the resources that other pods use: %w", ref, err)
	}
	others := []model.Admitted{}
	for _, taken := range all {
		if taken != nil && taken.Pod.UID != ref.UID {
			others = append(others, *taken)
		}
	}
	return others, nil
}
