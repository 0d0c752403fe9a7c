package executor

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/proof"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// container returns the container of a step.
func (x *subject) container(s *plan.Step) (podspec.ContainerRef, error) {
	if x.desired != nil {
		if ref, ok := podspec.FindContainer(x.desired.Pod, s.Container); ok {
			return ref, nil
		}
	}
	return podspec.ContainerRef{}, fmt.Errorf("container %s is not in the manifest", s.Container)
}

// sandboxConfig returns the message that the sandbox was or will be created with.
func (x *subject) sandboxConfig(attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	p, err := x.prover()
	if err != nil {
		return nil, err
	}
	return criconfig.Sandbox(p.Desired, p.Node, p.Paths, attempt)
}

// sandbox returns the sandbox in which containers of this pass start, with its message.
func (x *subject) sandbox() (sandboxOutput, error) {
	if known := x.outputs.sandbox(); known.config != nil {
		return known, nil
	}
	config, err := x.sandboxConfig(x.plan.Attempt)
	if err != nil {
		return sandboxOutput{}, err
	}
	return x.outputs.useConfig(config), nil
}

// prover returns a Prover for the current volumes, images and node.
func (x *subject) prover() (*proof.Prover, error) {
	return proof.New(proof.Facts{
		Volumes: x.volumes(x.desired), Node: x.node(), Runtime: x.plan.Runtime.Name, Images: x.outputs.allImages(),
	})
}

// message returns the message that creates a container, in a pod with the given addresses. It writes files and binds
// parts of volumes. They may have changed since the check, so each path is resolved again, without leaving its volume.
func (x *subject) message(
	ref podspec.ContainerRef, attempt uint32, ips []string, devices *model.DeviceConfig,
) (*runtimeapi.ContainerConfig, error) {
	p, err := x.prover()
	if err != nil {
		return nil, err
	}
	known, err := x.services()
	if err != nil {
		return nil, err
	}
	p.Services, p.Devices = known.Variables(x.desired.Pod), devices
	in, subs, err := p.Input(ref, attempt, ips, "")
	if err != nil {
		return nil, err
	}
	for _, i := range slices.Sorted(maps.Keys(subs)) {
		if in.Paths.SubPaths[i], err = volume.PrepareSubPath(x.volumes(x.desired), ref, i, subs[i]); err != nil {
			return nil, err
		}
	}
	if err = x.writeHosts(ips, known); err != nil {
		return nil, err
	}
	if ref.TerminationMessagePath != "" {
		if in.Paths.TerminationLog, err = x.terminationLog(ref.Name); err != nil {
			return nil, err
		}
	}
	if ref.Target != "" {
		if in.TargetID, err = x.target(ref.Target); err != nil {
			return nil, err
		}
	}
	return criconfig.Container(in)
}

func (x *subject) writeHosts(ips []string, known service.Known) error {
	hosts, err := criconfig.HostsFile(x.desired.Pod, x.node(), ips)
	if err != nil {
		return err
	}
	ofServices := service.Hosts(x.desired.Pod, x.node().Name, known.Names)
	return volume.WriteEtcHosts(x.pod, service.WithHosts(hosts, ofServices))
}

// services returns the Services for the environment and hosts of containers. They are derived from stored data, and
// hosts files are rewritten when it changes. If it cannot be read, the container starts without Services. A pod of the
// API server gets those of its cluster and none of podctl's own.
func (x *subject) services() (service.Known, error) {
	if x.desired.FromCluster() {
		return x.clusterServices()
	}
	text, err := x.layout.ServiceNames().Read()
	if err != nil {
		return service.Known{}, nil //nolint:nilerr // as described above
	}
	return service.DecodeKnown(text), nil
}

// errServicesUnread is a kubelet's error of a container that starts before the Services of the cluster were read.
var errServicesUnread = errors.New("services have not yet been read at least once, cannot construct envvars")

// clusterServices returns the Services of the cluster as last read.
func (x *subject) clusterServices() (service.Known, error) {
	text, err := state.ClusterServices(x.layout).Read()
	if err == nil && text == nil {
		err = errServicesUnread
	}
	return service.DecodeKnown(text), err
}

// terminationLog creates a file for the termination message of a container. It removes files of starts that were killed
// before the runtime had a record, because no container uses them.
func (x *subject) terminationLog(container string) (string, error) {
	used := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		addMounted(used, c.Status)
	}
	if err := x.pod.TerminationLogs(container).Remove(func(path string) bool { return !used[path] }); err != nil {
		return "", err
	}
	return x.pod.TerminationLogs(container).New()
}

// addMounted adds the host paths that are mounted into a container.
func addMounted(paths map[string]bool, status *runtimeapi.ContainerStatus) {
	for _, m := range status.GetMounts() {
		paths[m.GetHostPath()] = true
	}
}

// target returns the container that was started in this pass, or that ran before.
func (x *subject) target(container string) (string, error) {
	if id := x.outputs.startedID(container); id != "" {
		return id, nil
	}
	for _, c := range x.snapshot.Containers {
		isRunning := c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
		if isRunning && c.Status.GetLabels()[criconfig.LabelContainerName] == container {
			return c.Status.GetId(), nil
		}
	}
	return "", fmt.Errorf("container %s, whose processes it joins, does not run", container)
}
