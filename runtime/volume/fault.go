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

// Fault says why a volume cannot be made ready, as far as it shows without making it: a path of
// the host that is not what its type says, or a name that cannot be part of a path. What Prepare would make, or another volume of the
// pod may make, is no fault.
func Fault(c Context, name string) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}
	if m.vol.HostPath != nil {
		err = checkHostPath(m.vol.HostPath, m.at)
	} else {
		_, err = m.path()
	}
	switch {
	case err == nil, errors.Is(err, fs.ErrPermission):
		return nil
	case errors.Is(err, fs.ErrNotExist) && m.mayBeMade():
		return nil
	}
	return prepareError(name, err)
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
	for _, other := range podspec.UsedVolumes(m.Desired.Pod) {
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
