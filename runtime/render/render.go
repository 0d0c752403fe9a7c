package render

import (
	"encoding/json"
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// Messages are the CRI messages that create the sandbox and the containers of one pod, as protobuf JSON with proto
// field names.
type Messages struct {
	Pod        model.PodRef      `json:"pod"`
	Sandbox    json.RawMessage   `json:"sandbox"`
	Containers []json.RawMessage `json:"containers"`
}

// The placeholders for values that only a runtime knows.
const (
	unknownIP        = "$SANDBOX_IP"
	unknownImage     = "$IMAGE_ID"
	unknownTarget    = "$TARGET_ID"
	unknownMessage   = "$TERMINATION_LOG"
	unknownFileValue = "$FILE_VALUE"
)

// Render computes the messages of a pod for this machine, without a runtime. It assumes that the runtime supports all
// features that the pod needs. Digests replace the values of Secrets.
func Render(d *podspec.Desired, layout state.Layout, cgroupRoot string) (*Messages, error) {
	out := &Messages{Pod: model.RefOf(d.Pod)}
	var err error
	node := renderNode(d, layout, cgroupRoot)
	if out.Sandbox, out.Containers, err = render(renderable(d), layout, node); err != nil {
		return nil, fmt.Errorf("pod %s: %w", out.Pod, err)
	}
	return out, nil
}

// renderNode returns this machine with a runtime that supports all features that the pod needs.
func renderNode(d *podspec.Desired, layout state.Layout, cgroupRoot string) criconfig.Node {
	node := machine.Node("/")
	node.CgroupRoot, node.SeccompRoot = cgroupRoot, layout.Seccomp()
	class := ptr.Deref(d.Pod.Spec.RuntimeClassName, "")
	node.Classes = model.RuntimeClasses{class: class}
	node.Handlers = map[string]criconfig.Handler{class: {RecursiveReadOnlyMounts: true, UserNamespaces: true}}
	return node
}

func render(
	d *podspec.Desired, layout state.Layout, node criconfig.Node,
) (sandbox json.RawMessage, containers []json.RawMessage, err error) {
	in, err := placeholders(d, layout.Pod(d.Pod.UID), node)
	if err != nil {
		return nil, nil, err
	}
	message, err := criconfig.Sandbox(d, node, in.Paths, 0)
	if err != nil {
		return nil, nil, err
	}
	if sandbox, err = snapshot.Encode(message); err != nil {
		return nil, nil, err
	}
	for _, ref := range podspec.Containers(d.Pod) {
		text, err := renderContainer(in, layout.Pod(d.Pod.UID), ref)
		if err != nil {
			return nil, nil, err
		}
		containers = append(containers, text)
	}
	return sandbox, containers, nil
}

// placeholders returns an input with placeholders for values that only a runtime knows.
func placeholders(d *podspec.Desired, pod state.Pod, node criconfig.Node) (criconfig.ContainerInput, error) {
	in := criconfig.ContainerInput{
		Desired: d, Node: node, PodIPs: []string{unknownIP}, Images: map[string]model.Image{},
		Paths: criconfig.Paths{EtcHosts: pod.EtcHosts(), Volumes: volume.Context{Pod: pod, Desired: d}.Paths()},
	}
	for _, name := range podspec.ImageNames(d.Pod) {
		in.Images[name] = model.Image{ID: unknownImage}
	}
	if ids := state.AnyIDs(); criconfig.OwnUsers(d.Pod) {
		in.Paths.UserNS = &criconfig.IDMapping{HostID: ids.First, Length: ids.Length}
	}
	var err error
	in.Paths.LogDir, err = pod.Logs(d.Pod.Namespace, d.Pod.Name).Dir()
	return in, err
}

func renderContainer(
	in criconfig.ContainerInput, pod state.Pod, ref podspec.ContainerRef,
) (text json.RawMessage, err error) {
	in.Container, in.Files, in.Paths.SubPaths = ref, criconfig.Placeholders(ref, unknownFileValue), map[int]string{}
	for i := range ref.VolumeMounts {
		if in.Paths.SubPaths[i], err = pod.SubPath(ref.VolumeMounts[i].Name, ref.Name, i); err != nil {
			return nil, err
		}
	}
	dir, err := pod.TerminationLogs(ref.Name).Dir()
	if err != nil {
		return nil, err
	}
	if ref.Target != "" {
		in.TargetID = unknownTarget
	}
	in.Paths.TerminationLog = dir + "/" + unknownMessage
	config, err := criconfig.Container(in)
	if err != nil {
		return nil, err
	}
	return snapshot.Encode(config)
}

// renderable removes secret values, and the requirement that the image's user is known.
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
