package volume

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// fault returns the reason why the volume cannot be prepared, as far as podctl can see it without creating the volume.
// Reasons are a host path of another type or one that cannot be created, an invalid name, files whose paths collide,
// and huge pages that no container requests. A missing path that Prepare or another volume of the pod may create is not
// a fault. A missing object is not a fault either, because it is reported for its reference. contentErr is the error of
// the wanted content.
func (m *mounter) fault(contentErr error) (err error) {
	switch {
	case m.isLocal():
		err = localDir{m}.check()
	case m.vol.HostPath != nil:
		err = m.hostPathFault()
	default:
		err = m.ownFault(contentErr)
	}
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return prepareError(shownName(m, m.vol.Name), err)
}

func (m *mounter) hostPathFault() error {
	err := checkHostPath(m.vol.HostPath, m.at)
	if !errors.Is(err, fs.ErrNotExist) || !m.mayBeCreated() {
		return err
	}
	if why := cannotCreate(m.vol.HostPath.Path); why != nil && creates(m.vol.HostPath) {
		return fmt.Errorf("%s.hostPath: %w", m.at, why)
	}
	return nil
}

func (m *mounter) ownFault(contentErr error) error {
	if _, err := m.path(); err != nil {
		return err
	}
	if kind := medium(m.vol); strings.HasPrefix(string(kind), string(v1.StorageMediumHugePages)) {
		if _, err := pageSize(m.Desired.Pod, kind); err != nil {
			return err
		}
	}
	if errors.As(contentErr, new(*UnresolvedError)) {
		return nil
	}
	return contentErr
}

// RuntimeFault returns the reason why a runtime cannot mount a hostPath without a type. The runtime follows links, and
// creates a directory if the path is missing (containerd: WithMounts). A hostPath with a type is checked by fault.
func RuntimeFault(vol *v1.Volume) error {
	if vol == nil || vol.HostPath == nil || podspec.HostPathType(vol.HostPath) != v1.HostPathUnset {
		return nil
	}
	return cannotCreate(vol.HostPath.Path)
}

// prepareError adds the phase of the kubelet's that fails, and the name of the volume.
func prepareError(name string, err error) error {
	phase := "MountVolume.SetUp failed"
	if errors.As(err, new(*noPathError)) {
		phase = "MountVolume.NewMounter initialization failed"
	}
	return &model.KubeletError{
		Err:  fmt.Errorf("%s for volume %q: %w", phase, name, err),
		Text: fmt.Sprintf("%s for volume %q : %s", phase, name, cmp.Or(model.KubeletText(err), err.Error())),
	}
}

// shownName returns the name of a volume in messages. For a claim of the API server, it is that of the PersistentVolume
// (kubelet: Spec.Name).
func shownName(m *mounter, name string) string {
	if m != nil && m.bound != nil && m.Desired.FromCluster() {
		return m.bound.Name
	}
	return name
}

// mayBeCreated reports whether preparing the pod's volumes creates this path of the host.
func (m *mounter) mayBeCreated() bool {
	if creates(m.vol.HostPath) {
		return true
	}
	path := filepath.Clean(m.vol.HostPath.Path)
	for _, one := range podspec.UsedVolumes(m.Desired.Pod) {
		other := m.Desired.Volume(one)
		if other.HostPath == nil || !creates(other.HostPath) {
			continue
		}
		if made := filepath.Clean(other.HostPath.Path); made == path || strings.HasPrefix(made, path+"/") {
			return true
		}
	}
	return false
}

func creates(source *v1.HostPathVolumeSource) bool {
	kind, _ := hostPathKindOf(podspec.HostPathType(source))
	return kind.create != nil
}
