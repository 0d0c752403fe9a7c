package runtime

import (
	"encoding/json"
	"fmt"

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
	unknownWords     = "$TERMINATION_LOG"
	unknownFileValue = "$FILE_VALUE"
)

// Render computes the messages of a pod for this machine, without a runtime. What
// a runtime would have to offer for it is taken to be there. Digests stand for the
// values of Secrets.
func Render(d *podspec.Desired, layout state.Layout, cgroupRoot string) (*Messages, error) {
	r := &renderer{desired: renderable(d), pod: layout.Pod(d.Pod.UID), node: machine.Node("/")}
	r.node.CgroupRoot, r.node.SeccompRoot = cgroupRoot, layout.Seccomp()
	r.node.Handlers = map[string]criconfig.Handler{podspec.RuntimeHandler(d.Pod): {RecursiveReadOnlyMounts: true, UserNamespaces: true}}
	if criconfig.OwnUsers(d.Pod) {
		r.users = idMapping(state.AnyIDs())
	}
	out := &Messages{Pod: model.RefOf(d.Pod)}
	logs, err := r.pod.Logs(d.Pod.Namespace, d.Pod.Name).Dir()
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", out.Pod, err)
	}
	sandbox, err := criconfig.Sandbox(r.desired, r.node, criconfig.Paths{LogDir: logs, UserNS: r.users}, 0)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", out.Pod, err)
	}
	if out.Sandbox, err = snapshot.Encode(sandbox); err != nil {
		return nil, err
	}
	for _, ref := range podspec.Containers(r.desired.Pod) {
		text, err := r.container(ref)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", out.Pod, err)
		}
		out.Containers = append(out.Containers, text)
	}
	return out, nil
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

type renderer struct {
	desired *podspec.Desired
	pod     state.Pod
	node    criconfig.Node
	users   *criconfig.IDMapping
}

func (r *renderer) container(ref podspec.ContainerRef) (json.RawMessage, error) {
	in := criconfig.ContainerInput{
		Desired: r.desired, Container: ref, Node: r.node, ImageRef: unknownImage, PodIPs: []string{unknownIP},
		Paths: criconfig.Paths{EtcHosts: r.pod.EtcHosts(), Volumes: map[string]string{}, SubPaths: map[int]string{}, UserNS: r.users},
		Files: map[criconfig.FileKey][]byte{}, VolumeImages: map[string]string{},
	}
	if err := r.paths(ref, &in.Paths); err != nil {
		return nil, err
	}
	if ref.Target != "" {
		in.TargetID = unknownTarget
	}
	for i := range r.desired.Pod.Spec.Volumes {
		vol := &r.desired.Pod.Spec.Volumes[i]
		if vol.Image != nil {
			in.VolumeImages[vol.Image.Reference] = unknownImage
		}
	}
	addUnknownFiles(ref.Env, in.Files)
	config, err := criconfig.Container(in)
	if err != nil {
		return nil, err
	}
	return snapshot.Encode(config)
}

// paths fills in where things of a container will lie.
func (r *renderer) paths(ref podspec.ContainerRef, paths *criconfig.Paths) error {
	if ref.TerminationMessagePath != "" {
		dir, err := r.pod.TerminationLogs(ref.Name).Dir()
		if err != nil {
			return err
		}
		paths.TerminationLog = dir + "/" + unknownWords
	}
	for i := range r.desired.Pod.Spec.Volumes {
		vol := &r.desired.Pod.Spec.Volumes[i]
		path, err := volume.Context{Pod: r.pod, Desired: r.desired}.Path(vol)
		if err != nil {
			return fmt.Errorf("volume %q: %w", vol.Name, err)
		}
		paths.Volumes[vol.Name] = path
	}
	for i, m := range ref.VolumeMounts {
		if m.SubPath == "" && m.SubPathExpr == "" {
			continue
		}
		path, err := r.pod.SubPath(m.Name, ref.Name, i)
		if err != nil {
			return err
		}
		paths.SubPaths[i] = path
	}
	return nil
}

// addUnknownFiles stands in for environment files that init containers write.
func addUnknownFiles(env []v1.EnvVar, files map[criconfig.FileKey][]byte) {
	for i := range env {
		if env[i].ValueFrom != nil && env[i].ValueFrom.FileKeyRef != nil {
			file := env[i].ValueFrom.FileKeyRef
			key := criconfig.FileKey{Volume: file.VolumeName, Path: file.Path}
			files[key] = append(files[key], file.Key+"='"+unknownFileValue+"'\n"...)
		}
	}
}
