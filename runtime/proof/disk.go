package proof

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/util/env"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/volume"
)

// envFiles returns the values that a container's environment takes from files of volumes. Values of a file that no init
// container has written yet are unwritten; if that is empty, they are omitted.
func envFiles(c volume.Context, ref podspec.ContainerRef, unwritten string) (map[criconfig.FileKey]string, error) {
	values := map[criconfig.FileKey]string{}
	for i := range ref.Env {
		if ref.Env[i].ValueFrom == nil || ref.Env[i].ValueFrom.FileKeyRef == nil {
			continue
		}
		key := ref.Env[i].ValueFrom.FileKeyRef
		text, err := envFile(c, key)
		if errors.Is(err, fs.ErrNotExist) {
			if unwritten != "" {
				values[criconfig.KeyOf(key)] = unwritten
			}
			continue
		}
		if err == nil {
			values[criconfig.KeyOf(key)], err = envValue(text, key)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.env[%d]: %w", ref.Path, i, err)
		}
	}
	return values, nil
}

// envValue finds a key in a file. The kubelet's parser opens a path. It gets a file in memory, because the one in the
// volume may be replaced, or grow without limit.
func envValue(text []byte, key *v1.FileKeySelector) (value string, err error) {
	fd, err := unix.MemfdCreate("env", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3 does not know the flag, which newer kernels may require.
		fd, err = unix.MemfdCreate("env", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), "env")
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err = f.Write(text); err != nil {
		return "", err
	}
	if value, err = env.ParseEnv(fmt.Sprintf("/proc/self/fd/%d", fd), key.Key); err != nil {
		return "", fmt.Errorf("file %s in volume %s: %w", key.Path, key.VolumeName, err)
	}
	return value, nil
}

// envFileMax limits an environment file, in bytes.
const envFileMax = 1 << 20

// envFile reads one file of a volume. It refuses links that lead out of it.
func envFile(c volume.Context, ref *v1.FileKeySelector) (text []byte, err error) {
	vol, ok := podspec.VolumeNamed(c.Desired, ref.VolumeName)
	if !ok {
		return nil, fmt.Errorf("the pod has no volume %q", ref.VolumeName)
	}
	path, err := c.Path(vol)
	if err != nil {
		return nil, fmt.Errorf("volume %q: %w", vol.Name, err)
	}
	// A container can put a device there. Opening a device may have side effects.
	handle, err := safefs.HandleBeneath(path, ref.Path)
	if err != nil {
		return nil, fmt.Errorf("%s in volume %s: %w", ref.Path, ref.VolumeName, err)
	}
	defer handle.Close() //nolint:errcheck // it was only a path
	f, err := safefs.ReopenRegular(handle, ref.Path)
	if errors.Is(err, safefs.ErrNotRegular) {
		return nil, fmt.Errorf("%s in volume %s is not a regular file", ref.Path, ref.VolumeName)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = input.ReadAtMost(f, envFileMax)
	if err != nil {
		return nil, fmt.Errorf("%s in volume %s: %w", ref.Path, ref.VolumeName, err)
	}
	return text, nil
}
