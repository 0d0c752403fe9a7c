package render

import (
	"encoding/json"
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// Messages are the CRI messages of one pod, as protobuf JSON with proto field
// names: what its sandbox and each of its containers would be created with.
type Messages struct {
	Pod        model.PodRef      `json:"pod"`
	Sandbox    json.RawMessage   `json:"sandbox"`
	Containers []json.RawMessage `json:"containers"`
}

// What stands in messages for what only a runtime can tell.
const (
	unknownIP        = "$SANDBOX_IP"
	unknownImage     = "$IMAGE_ID"
	unknownTarget    = "$TARGET_ID"
	unknownMessage   = "$TERMINATION_LOG"
	unknownFileValue = "$FILE_VALUE"
)

// Render computes the messages of a pod for this machine, without a runtime. What
// a runtime would have to offer for it is taken to be there. Digests stand for the
// values of Secrets.
func Render(d *podspec.Desired, layout state.Layout, cgroupRoot string) (*Messages, error) {
	out := &Messages{Pod: model.RefOf(d.Pod)}
	var err error
	if out.Sandbox, out.Containers, err = render(renderable(d), layout, renderNode(d.Pod, layout, cgroupRoot)); err != nil {
		return nil, fmt.Errorf("pod %s: %w", out.Pod, err)
	}
	return out, nil
}

// renderNode is this machine with a runtime that can do what the pod asks for.
func renderNode(pod *v1.Pod, layout state.Layout, cgroupRoot string) criconfig.Node {
	node := machine.Node("/")
	node.CgroupRoot, node.SeccompRoot = cgroupRoot, layout.Seccomp()
	node.Handlers = map[string]criconfig.Handler{podspec.RuntimeHandler(pod): {RecursiveReadOnlyMounts: true, UserNamespaces: true}}
	return node
}

func render(d *podspec.Desired, layout state.Layout, node criconfig.Node) (sandbox json.RawMessage, containers []json.RawMessage, err error) {
	source := &placeholders{desired: d, pod: layout.Pod(d.Pod.UID)}
	users, _ := source.Users()
	logs, err := source.pod.Logs(d.Pod.Namespace, d.Pod.Name).Dir()
	if err != nil {
		return nil, nil, err
	}
	message, err := criconfig.Sandbox(d, node, criconfig.Paths{LogDir: logs, UserNS: users}, 0)
	if err != nil {
		return nil, nil, err
	}
	if sandbox, err = snapshot.Encode(message); err != nil {
		return nil, nil, err
	}
	builder := criconfig.Builder{Desired: d, Node: node, Source: source}
	for _, ref := range podspec.Containers(d.Pod) {
		config, err := builder.Container(ref, 0, []string{unknownIP})
		if err != nil {
			return nil, nil, err
		}
		text, err := snapshot.Encode(config)
		if err != nil {
			return nil, nil, err
		}
		containers = append(containers, text)
	}
	return sandbox, containers, nil
}

// renderable leaves out secret values, and the demand that the image's user be
// known.
func renderable(d *podspec.Desired) *podspec.Desired {
	without := d.WithoutSecrets()
	without.Pod = d.Pod.DeepCopy()
	if sc := without.Pod.Spec.SecurityContext; sc != nil {
		sc.RunAsNonRoot = nil
	}
	for _, ref := range podspec.Containers(without.Pod) {
		if ref.SecurityContext != nil {
			ref.SecurityContext.RunAsNonRoot = nil
		}
	}
	return without
}

// placeholders is a criconfig.Source that names what only a runtime can tell.
type placeholders struct {
	desired *podspec.Desired
	pod     state.Pod
}

// Image is the placeholder of an image without a user.
func (*placeholders) Image(string) (string, criconfig.ImageUser, error) {
	return unknownImage, criconfig.ImageUser{}, nil
}

// VolumeImage is the placeholder of an image.
func (*placeholders) VolumeImage(string) string { return unknownImage }

// EnvFile is missing: an init container writes it.
func (*placeholders) EnvFile(*v1.FileKeySelector) ([]byte, error) { return nil, fs.ErrNotExist }

// Unwritten is the placeholder of a value.
func (*placeholders) Unwritten() string { return unknownFileValue }

// Users is a range of ids like the one that the pod will get.
func (s *placeholders) Users() (*criconfig.IDMapping, error) {
	if !criconfig.OwnUsers(s.desired.Pod) {
		return nil, nil
	}
	ids := state.AnyIDs()
	return &criconfig.IDMapping{HostID: ids.First, Length: ids.Length}, nil
}

// VolumePath is where the volume will lie.
func (s *placeholders) VolumePath(vol *v1.Volume) (string, error) {
	return volume.Context{Pod: s.pod, Desired: s.desired}.Path(vol)
}

// SubPath is where the part will be bound.
func (s *placeholders) SubPath(ref podspec.ContainerRef, mount int, _ func() (string, error)) (string, error) {
	return s.pod.SubPath(ref.VolumeMounts[mount].Name, ref.Name, mount)
}

// Services are not known.
func (*placeholders) Services() map[string]string { return nil }

// Hosts is where the hosts file will lie.
func (s *placeholders) Hosts([]string) (string, error) { return s.pod.EtcHosts(), nil }

// TerminationLog is the placeholder of a file in the container's directory.
func (s *placeholders) TerminationLog(container string) (string, error) {
	dir, err := s.pod.TerminationLogs(container).Dir()
	return dir + "/" + unknownMessage, err
}

// Target is the placeholder of a container's id.
func (*placeholders) Target(string) (string, error) { return unknownTarget, nil }
