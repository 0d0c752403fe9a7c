package executor

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/proof"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// inputs is the criconfig.Source of containers that start: it writes files and binds parts
// of volumes as it is asked for them.
type inputs struct {
	*subject
	outputs *outputs
	names   state.ServiceFile
}

// builder builds the messages of containers from a source.
func (x *inputs) builder(source criconfig.Source) *criconfig.Builder {
	return &criconfig.Builder{Desired: x.desired, Node: x.node(), Source: source}
}

// container is the container that a step is about.
func (x *inputs) container(s *plan.Step) (podspec.ContainerRef, error) {
	if x.desired != nil {
		if ref, ok := podspec.FindContainer(x.desired.Pod, s.Container); ok {
			return ref, nil
		}
	}
	return podspec.ContainerRef{}, fmt.Errorf("container %s is not in the manifest", s.Container)
}

// sandboxConfig is the message the sandbox was, or will be, created with.
func (x *inputs) sandboxConfig(attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	users, err := x.Users()
	if err != nil {
		return nil, err
	}
	logs, err := x.pod.Logs(x.desired.Pod.Namespace, x.desired.Pod.Name).Dir()
	if err != nil {
		return nil, err
	}
	return criconfig.Sandbox(x.desired, x.node(), criconfig.Paths{LogDir: logs, UserNS: users}, attempt)
}

// sandbox is the sandbox in which containers of this pass start, with its message.
func (x *inputs) sandbox() (sandboxOutput, error) {
	return x.outputs.sandboxWith(func() (*runtimeapi.PodSandboxConfig, error) { return x.sandboxConfig(x.plan.Attempt) })
}

// Image is what is known now of an image: from the observation, or from this plan's own pull.
func (x *inputs) Image(reference string) (string, criconfig.ImageUser, error) {
	img := x.outputs.image(reference)
	if img.ID == "" {
		return "", criconfig.ImageUser{}, fmt.Errorf("image %s is not present; pull it, or apply with --pull missing", reference)
	}
	return img.ID, criconfig.ImageUser{UID: img.UID, Username: img.Username}, nil
}

// VolumeImage is the id of an image that is mounted as a volume.
func (x *inputs) VolumeImage(reference string) string { return x.outputs.image(reference).ID }

// disk is what lies on disk for the pod.
func (x *inputs) disk() proof.Disk { return proof.Disk{Volumes: x.volumes(x.desired)} }

// EnvFile reads one file of a volume.
func (x *inputs) EnvFile(ref *v1.FileKeySelector) ([]byte, error) { return x.disk().EnvFile(ref) }

// Unwritten is empty: the runtime refuses a container without its file.
func (*inputs) Unwritten() string { return "" }

// Users is the range of ids of a pod with a user namespace of its own.
func (x *inputs) Users() (*criconfig.IDMapping, error) { return x.disk().Users() }

// VolumePath is where a volume's content lies.
func (x *inputs) VolumePath(vol *v1.Volume) (string, error) {
	return x.disk().VolumePath(vol)
}

// SubPath binds the part of a volume.
func (x *inputs) SubPath(ref podspec.ContainerRef, mount int, part func() (string, error)) (string, error) {
	sub, err := part()
	if err != nil {
		return "", err
	}
	return volume.PrepareSubPath(x.volumes(x.desired), ref, mount, sub)
}

// Hosts writes the hosts file.
func (x *inputs) Hosts(ips []string) (string, error) {
	hosts, err := criconfig.HostsFile(x.desired.Pod, x.node(), ips)
	if err == nil {
		hosts = service.WithHosts(hosts, service.Hosts(x.desired.Pod, x.node().Name, x.services().Names))
		err = volume.WriteEtcHosts(x.pod, hosts)
	}
	return x.pod.EtcHosts(), err
}

// Services are the variables by which containers of the pod find Services.
func (x *inputs) Services() map[string]string { return x.services().Variables(x.desired.Pod) }

// services are what containers are told of Services. It follows from what is kept elsewhere, and hosts files are written again
// when that changes: where it cannot be read the container starts without.
func (x *inputs) services() service.Known {
	text, err := x.names.Read()
	if err != nil {
		return service.Known{}
	}
	return service.DecodeKnown(text)
}

// TerminationLog makes a new file for the termination message of a container, and removes
// those of starts that were killed before the runtime had a record: none uses them.
func (x *inputs) TerminationLog(container string) (string, error) {
	used := map[string]bool{}
	for _, c := range x.snapshot.Containers {
		addMounted(used, c.Status)
	}
	if err := x.pod.TerminationLogs(container).Remove(func(path string) bool { return !used[path] }); err != nil {
		return "", err
	}
	return x.pod.TerminationLogs(container).New()
}

// addMounted notes what is mounted into a container.
func addMounted(paths map[string]bool, status *runtimeapi.ContainerStatus) {
	for _, m := range status.GetMounts() {
		paths[m.GetHostPath()] = true
	}
}

// Target is the container that was started in this pass, or that ran before.
func (x *inputs) Target(container string) (string, error) {
	if id := x.outputs.startedID(container); id != "" {
		return id, nil
	}
	for _, c := range x.snapshot.Containers {
		if c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING && c.Status.GetLabels()[criconfig.LabelContainerName] == container {
			return c.Status.GetId(), nil
		}
	}
	return "", fmt.Errorf("container %s, whose processes it joins, does not run", container)
}
