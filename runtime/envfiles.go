package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/criconfig"
)

// envFileMax bounds an environment file, in bytes.
const envFileMax = 1 << 20

// envFiles reads the files that a container's environment refers to: an init
// container wrote them into an emptyDir. Before that has run they cannot be
// proven, and a proof takes them as they will be.
func (x *execution) envFiles(ref podspec.ContainerRef, mode mountMode) (map[criconfig.FileKey][]byte, error) {
	files := map[criconfig.FileKey][]byte{}
	for i := range ref.Env {
		if ref.Env[i].ValueFrom == nil || ref.Env[i].ValueFrom.FileKeyRef == nil {
			continue
		}
		file := ref.Env[i].ValueFrom.FileKeyRef
		key := criconfig.FileKey{Volume: file.VolumeName, Path: file.Path}
		text, err := x.envFile(file)
		switch {
		case err == nil:
			files[key] = text
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s.env[%d]: %w", ref.Path, i, err)
		case mode == mountsForProof:
			files[key] = append(files[key], file.Key+"='?'\n"...)
		}
	}
	return files, nil
}

// envFile reads one file of a volume. Links in it that lead out are refused.
func (x *execution) envFile(ref *v1.FileKeySelector) (text []byte, err error) {
	vol, _ := podspec.FindVolume(x.desired.Pod, ref.VolumeName)
	if vol == nil {
		return nil, fmt.Errorf("the pod has no volume %q", ref.VolumeName)
	}
	path, err := x.volumePath(vol)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.OpenFile(ref.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, statErr := f.Stat(); statErr != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(statErr, fmt.Errorf("%s in volume %s is not a regular file", ref.Path, ref.VolumeName))
	}
	text, err = input.ReadAtMost(f, envFileMax)
	if err != nil {
		return nil, fmt.Errorf("%s in volume %s: %w", ref.Path, ref.VolumeName, err)
	}
	return text, nil
}
