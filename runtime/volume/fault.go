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

// faultOf says why a volume cannot be made ready, as far as it shows without making it: a path of the
// host that is not what its type says and cannot be made, a name that cannot be part of a path, files
// that exclude each other, or pages that nobody requests. What Prepare would make, or another volume
// of the pod may make, is no fault. Nor is what the manifest lacks: that is told of its reference.
func faultOf(c Context, name string) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}
	if m.vol.HostPath != nil {
		err = m.hostPathFault()
	} else {
		err = m.ownFault()
	}
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return prepareError(name, err)
}

func (m *mounter) hostPathFault() error {
	err := checkHostPath(m.vol.HostPath, m.at)
	if !errors.Is(err, fs.ErrNotExist) || !m.mayBeMade() {
		return err
	}
	if why := unmakeable(m.vol.HostPath.Path); why != nil && creates(m.vol.HostPath) {
		return fmt.Errorf("%s.hostPath: %w", m.at, why)
	}
	return nil
}

func (m *mounter) ownFault() error {
	if _, err := m.path(); err != nil {
		return err
	}
	if kind := medium(m.vol); strings.HasPrefix(string(kind), string(v1.StorageMediumHugePages)) {
		if _, err := pageSize(m.Desired.Pod, kind); err != nil {
			return err
		}
	}
	_, err := collector{m}.content()
	if errors.As(err, new(*UnresolvedError)) {
		return nil
	}
	return err
}

// RuntimeFault says why a runtime cannot mount a volume that is a path of the host without a type:
// it follows links to what is there, and makes a directory of what is not (containerd:
// WithMounts). With a type the volume itself is proved.
func RuntimeFault(vol *v1.Volume) error {
	if vol == nil || vol.HostPath == nil || podspec.HostPathType(vol.HostPath) != v1.HostPathUnset {
		return nil
	}
	return unmakeable(vol.HostPath.Path)
}

func prepareError(name string, err error) error {
	return &model.KubeletError{
		Err:  fmt.Errorf("MountVolume.SetUp failed for volume %q: %w", name, err),
		Text: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", name, cmp.Or(model.KubeletText(err), err.Error())),
	}
}

// mayBeMade reports whether a path of the host will be there once the volumes of the pod are
// prepared.
func (m *mounter) mayBeMade() bool {
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
