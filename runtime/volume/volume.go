package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Context is what the volumes of one pod depend on.
type Context struct {
	Pod     state.Pod
	Desired *podspec.Desired
	// Allocatable is what the node has to give: the bound of a memory volume, and
	// the value of limits that are not set.
	Allocatable v1.ResourceList
}

// The kubelet's names of the kinds of volume, which are part of their paths.
const (
	pluginEmptyDir    = "empty-dir"
	pluginConfigMap   = "configmap"
	pluginSecret      = "secret"
	pluginDownwardAPI = "downward-api"
	pluginProjected   = "projected"
)

// plugin is the kubelet's name of a volume's kind; empty for one that has no
// directory of the pod's own.
func plugin(vol *v1.Volume) string {
	switch {
	case vol.EmptyDir != nil:
		return pluginEmptyDir
	case vol.ConfigMap != nil:
		return pluginConfigMap
	case vol.Secret != nil:
		return pluginSecret
	case vol.DownwardAPI != nil:
		return pluginDownwardAPI
	case vol.Projected != nil:
		return pluginProjected
	}
	return ""
}

// Path is where a volume's content lies: for a hostPath the host's own path; for
// an image volume, which the runtime mounts, nothing.
func Path(p state.Pod, vol *v1.Volume) string {
	if vol.HostPath != nil {
		return vol.HostPath.Path
	}
	if kind := plugin(vol); kind != "" {
		return p.VolumeDir(kind, vol.Name)
	}
	return ""
}

// Used lists the volumes that some container mounts, in the order of the
// manifest. The others are not set up, as by the kubelet.
func Used(pod *v1.Pod) []*v1.Volume {
	mounted := map[string]bool{}
	for _, ref := range podspec.Containers(pod) {
		for i := range ref.VolumeMounts {
			mounted[ref.VolumeMounts[i].Name] = true
		}
	}
	var used []*v1.Volume
	for i := range pod.Spec.Volumes {
		if mounted[pod.Spec.Volumes[i].Name] {
			used = append(used, &pod.Spec.Volumes[i])
		}
	}
	return used
}

func (c Context) find(name string) (*v1.Volume, error) {
	for i := range c.Desired.Pod.Spec.Volumes {
		if c.Desired.Pod.Spec.Volumes[i].Name == name {
			return &c.Desired.Pod.Spec.Volumes[i], nil
		}
	}
	return nil, fmt.Errorf("the pod has no volume %q", name)
}

// Prepare makes a volume ready to be mounted. It may be called again at any
// time: what is there already stays.
func Prepare(ctx context.Context, c Context, name string) error {
	vol, err := c.find(name)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch {
	case vol.HostPath != nil:
		err = prepareHostPath(vol.HostPath)
	case vol.EmptyDir != nil:
		err = c.prepareEmptyDir(vol)
	case plugin(vol) != "":
		err = c.prepareContent(vol)
	}
	if err != nil {
		return fmt.Errorf("preparing volume %s: %w", name, err)
	}
	return nil
}

// Update brings the content of a volume that is in use up to date.
func Update(ctx context.Context, c Context, name string) error {
	return Prepare(ctx, c, name)
}

// prepareContent makes a volume whose content comes from the manifest. All kinds
// but ConfigMaps lie in memory, so that secrets never reach a disk.
func (c Context) prepareContent(vol *v1.Volume) error {
	files, err := c.content(vol)
	if err != nil {
		return err
	}
	dir := Path(c.Pod, vol)
	if vol.ConfigMap != nil {
		err = makeWorld(dir)
	} else {
		err = c.mountMemory(dir, nil)
	}
	if err != nil {
		return err
	}
	changed, err := writeAtomically(dir, files)
	if err != nil {
		return err
	}
	if changed {
		if err := c.applyFSGroup(dir, groupReads); err != nil {
			return err
		}
	}
	return c.mark(vol)
}

// OnDisk tells what lies on disk for a volume: whether it is prepared, and for
// one whose content podctl writes, the content's digest.
func OnDisk(c Context, name string) (digest string, prepared bool, err error) {
	vol, err := c.find(name)
	if err != nil {
		return "", false, err
	}
	if vol.HostPath != nil {
		return "", checkHostPath(vol.HostPath) == nil, nil
	}
	kind := plugin(vol)
	if kind == "" {
		return "", true, nil
	}
	dir := Path(c.Pod, vol)
	if !isMarked(c.Pod, kind, name) || !isDir(dir) {
		return "", false, nil
	}
	if inMemory(vol) {
		mounted, mountErr := mountinfo.Mounted(dir)
		if mountErr != nil || !mounted {
			return "", false, mountErr
		}
	}
	if vol.EmptyDir != nil {
		return "", true, nil
	}
	files, err := readBack(dir)
	if err != nil {
		return "", false, err
	}
	return digestOf(files), true, nil
}

// Wanted is the digest that a volume's content should have now; empty for a
// volume whose content is not podctl's.
func Wanted(c Context, name string) (string, error) {
	vol, err := c.find(name)
	if err != nil || vol.EmptyDir != nil || plugin(vol) == "" {
		return "", err
	}
	files, err := c.content(vol)
	if err != nil {
		return "", err
	}
	return digestOf(files), nil
}

func inMemory(vol *v1.Volume) bool {
	if vol.EmptyDir != nil {
		return vol.EmptyDir.Medium != v1.StorageMediumDefault
	}
	return vol.ConfigMap == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isMarked(p state.Pod, kind, name string) bool {
	_, err := os.Lstat(p.VolumeMarker(kind, name))
	return err == nil
}

// mark notes that a volume is complete.
func (c Context) mark(vol *v1.Volume) error {
	path := c.Pod.VolumeMarker(plugin(vol), vol.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o640)
}

// makeWorld makes a directory that every user of a container may write to, as
// the kubelet makes it.
func makeWorld(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return os.Chmod(dir, 0o777)
}

// RemoveAll unmounts and removes every volume of a pod, with its hosts file and
// termination messages. Nothing outside the
// pod's own directories is touched: bound subPaths are unmounted before anything
// is deleted, and links are not followed.
func RemoveAll(p state.Pod) error {
	for _, dir := range []string{p.SubPaths(), p.Volumes()} {
		if err := unmountBelow(dir); err != nil {
			return err
		}
	}
	for _, path := range []string{p.SubPaths(), p.Volumes(), p.Plugins(), p.Containers(), p.EtcHosts()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing volumes: %w", err)
		}
	}
	return nil
}

func unmountBelow(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("looking for mounts: %w", err)
	}
	for _, m := range slices.Backward(mounts) {
		if err = unix.Unmount(m.Mountpoint, unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting %s: %w", m.Mountpoint, err)
		}
	}
	left, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("looking for mounts: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("removing volumes: %s is still mounted", left[0].Mountpoint)
	}
	return nil
}

// WriteEtcHosts writes the hosts file that the containers of a pod share. It is
// written in place: containers that run have it mounted.
func WriteEtcHosts(p state.Pod, content []byte) error {
	if old, err := os.ReadFile(p.EtcHosts()); err == nil {
		if string(old) == string(content) {
			return nil
		}
		return os.WriteFile(p.EtcHosts(), content, 0o644)
	}
	if err := p.MakeDir(p.Dir(), 0o750); err != nil {
		return err
	}
	if err := renameio.WriteFile(p.EtcHosts(), content, 0o644, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("writing the hosts file: %w", err)
	}
	return nil
}

// within tells that a relative path names something below a directory by its
// own words.
func within(path string) bool {
	return path != "" && !filepath.IsAbs(path) && !slices.Contains(strings.Split(path, "/"), "..")
}
