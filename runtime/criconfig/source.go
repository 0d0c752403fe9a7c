package criconfig

import (
	"errors"
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
)

// Source supplies what the configuration of a container depends on and neither its manifest
// nor the node has: what the runtime has, and what lies on disk. A source that starts
// containers makes things ready as it is asked for them; one that proves or shows a
// configuration only says what they will be.
type Source interface {
	// Image is an image that is present, as the runtime identifies it, with its user.
	Image(reference string) (id string, user ImageUser, err error)
	// VolumeImage is the id of an image that is mounted as a volume; empty when unknown.
	VolumeImage(reference string) string
	// EnvFile is the content of a file that the environment refers to. The error is
	// fs.ErrNotExist while no init container has written it.
	EnvFile(file *v1.FileKeySelector) ([]byte, error)
	// Unwritten stands for the value of a variable from such a file; empty for none.
	Unwritten() string
	// Services are the variables by which containers of the pod find Services; nil for none.
	Services() map[string]string
	// Users are the ids of a pod with a user namespace of its own; nil for any other.
	Users() (*IDMapping, error)
	// VolumePath is where the content of a volume lies.
	VolumePath(vol *v1.Volume) (string, error)
	// SubPath is what is mounted for the part of a volume that a mount names. The part
	// itself is computed when it is asked for.
	SubPath(ref podspec.ContainerRef, mount int, part func() (string, error)) (string, error)
	// Hosts is the hosts file of a pod with these addresses.
	Hosts(ips []string) (path string, err error)
	// TerminationLog is the file for the termination message; empty when there is none yet.
	TerminationLog(container string) (path string, err error)
	// Target is the id of the container whose processes an ephemeral container joins.
	Target(container string) (id string, err error)
}

// Builder builds the messages with which the containers of a pod are created. It is the one
// place that does.
type Builder struct {
	Desired *podspec.Desired
	Node    Node
	Source  Source
}

// Container is the message for one attempt of a container in a pod with these addresses.
func (b *Builder) Container(ref podspec.ContainerRef, attempt uint32, ips []string) (*runtimeapi.ContainerConfig, error) {
	in := ContainerInput{Desired: b.Desired, Container: ref, Node: b.Node, Attempt: attempt, PodIPs: ips}
	var err error
	if in.ImageRef, in.Image, err = b.Source.Image(ref.Image); err != nil {
		return nil, err
	}
	in.VolumeImages, in.Services = b.volumeImages(), b.Source.Services()
	if in.Files, err = b.envFiles(ref); err != nil {
		return nil, err
	}
	// A subPathExpr may name a variable from a file.
	if err = b.addPaths(&in); err != nil {
		return nil, err
	}
	if ref.Target != "" {
		if in.TargetID, err = b.Source.Target(ref.Target); err != nil {
			return nil, err
		}
	}
	return Container(in)
}

func (b *Builder) volumeImages() map[string]string {
	ids := map[string]string{}
	for i := range b.Desired.Pod.Spec.Volumes {
		if source := b.Desired.Pod.Spec.Volumes[i].Image; source != nil {
			ids[source.Reference] = b.Source.VolumeImage(source.Reference)
		}
	}
	return ids
}

// envFiles reads the files that a container's environment refers to.
func (b *Builder) envFiles(ref podspec.ContainerRef) (map[FileKey][]byte, error) {
	files := map[FileKey][]byte{}
	for i := range ref.Env {
		if ref.Env[i].ValueFrom == nil || ref.Env[i].ValueFrom.FileKeyRef == nil {
			continue
		}
		file := ref.Env[i].ValueFrom.FileKeyRef
		key := FileKey{Volume: file.VolumeName, Path: file.Path}
		text, err := b.Source.EnvFile(file)
		unwritten := b.Source.Unwritten()
		switch {
		case err == nil:
			files[key] = text
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s.env[%d]: %w", ref.Path, i, err)
		case unwritten != "":
			files[key] = append(files[key], file.Key+"='"+unwritten+"'\n"...)
		}
	}
	return files, nil
}

// addPaths fills in where the things of a container lie.
func (b *Builder) addPaths(in *ContainerInput) (err error) {
	p := &in.Paths
	p.Volumes, p.SubPaths = map[string]string{}, map[int]string{}
	if p.UserNS, err = b.Source.Users(); err != nil {
		return err
	}
	for i := range b.Desired.Pod.Spec.Volumes {
		vol := &b.Desired.Pod.Spec.Volumes[i]
		if p.Volumes[vol.Name], err = b.Source.VolumePath(vol); err != nil {
			return fmt.Errorf("volume %q: %w", vol.Name, err)
		}
	}
	if err = b.addSubPaths(in); err != nil {
		return err
	}
	if p.EtcHosts, err = b.Source.Hosts(in.PodIPs); err != nil || in.Container.TerminationMessagePath == "" {
		return err
	}
	p.TerminationLog, err = b.Source.TerminationLog(in.Container.Name)
	return err
}

// addSubPaths resolves the mounts that take a part of a volume.
func (b *Builder) addSubPaths(in *ContainerInput) (err error) {
	for i := range in.Container.VolumeMounts {
		m := &in.Container.VolumeMounts[i]
		if m.SubPath == "" && m.SubPathExpr == "" {
			continue
		}
		if vol, _ := podspec.FindVolume(b.Desired.Pod, m.Name); vol != nil && vol.Image != nil {
			continue
		}
		part := func() (string, error) { return SubPath(*in, i) }
		if in.Paths.SubPaths[i], err = b.Source.SubPath(in.Container, i, part); err != nil {
			return err
		}
	}
	return nil
}
