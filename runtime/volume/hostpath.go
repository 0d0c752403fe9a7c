package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
)

// hostPathKind describes a type of hostPath.
type hostPathKind struct {
	// is reports whether an existing file has the right type; what names the type.
	is   func(fs.FileMode) bool
	what string
	// create creates a missing file. It is nil if podctl must not create one.
	create func(path string) error
}

// hostPathKindOf returns the type of a hostPath; false if it has none or an unknown one.
func hostPathKindOf(source *v1.HostPathVolumeSource) (hostPathKind, bool) {
	isSocket := func(m fs.FileMode) bool { return m&fs.ModeSocket != 0 }
	isCharDevice := func(m fs.FileMode) bool { return m&fs.ModeCharDevice != 0 }
	isBlockDevice := func(m fs.FileMode) bool { return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0 }
	found, ok := map[v1.HostPathType]hostPathKind{
		v1.HostPathDirectory:         {fs.FileMode.IsDir, "a directory", nil},
		v1.HostPathDirectoryOrCreate: {fs.FileMode.IsDir, "a directory", createDirs},
		v1.HostPathFile:              {fs.FileMode.IsRegular, "a file", nil},
		v1.HostPathFileOrCreate:      {fs.FileMode.IsRegular, "a file", createFile},
		v1.HostPathSocket:            {isSocket, "a socket file", nil},
		v1.HostPathCharDev:           {isCharDevice, "a character device", nil},
		v1.HostPathBlockDev:          {isBlockDevice, "a block device", nil},
	}[ptr.Deref(source.Type, v1.HostPathUnset)]
	return found, ok
}

func (m *mounter) hostPathFault() error {
	err := checkHostPath(m.vol)
	if !errors.Is(err, fs.ErrNotExist) || !m.mayBeCreated() {
		return err
	}
	if why := cannotCreate(m.vol.HostPath.Path); why != nil && creates(m.vol.HostPath) {
		return fmt.Errorf("%s.hostPath: %w", m.vol.Path, why)
	}
	return nil
}

// mayBeCreated reports whether preparing the pod's volumes creates this path of the host.
func (m *mounter) mayBeCreated() bool {
	if creates(m.vol.HostPath) {
		return true
	}
	path := filepath.Clean(m.vol.HostPath.Path)
	for _, other := range podspec.MountedVolumes(m.Desired) {
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
	kind, _ := hostPathKindOf(source)
	return kind.create != nil
}

// checkHostPath checks that a path of the host has its declared type. It follows links, because the path belongs to the
// owner of the machine (kubelet: hostPathMounter).
func checkHostPath(vol podspec.Volume) error {
	source, at := vol.HostPath, vol.Path
	if !filepath.IsAbs(source.Path) {
		return fmt.Errorf("%s.hostPath.path: %q must be an absolute path", at, source.Path)
	}
	if slices.Contains(strings.Split(source.Path, "/"), "..") {
		return fmt.Errorf("%s.hostPath.path: %q must not contain '..'", at, source.Path)
	}
	if ptr.Deref(source.Type, v1.HostPathUnset) == v1.HostPathUnset {
		return nil
	}
	kind, ok := hostPathKindOf(source)
	if !ok {
		return fmt.Errorf("%s.hostPath.type: %q is not a type of hostPath", at, *source.Type)
	}
	text := fmt.Sprintf("hostPath type check failed: %s is not %s", source.Path, kind.what)
	info, err := os.Stat(source.Path)
	switch {
	case err != nil:
		err = fmt.Errorf("%s.hostPath: %s: %w", at, text, err)
	case !kind.is(info.Mode()):
		err = fmt.Errorf("%s.hostPath: %s", at, text)
	default:
		return nil
	}
	return &model.KubeletError{Err: err, Text: text}
}

// RuntimeFault returns the reason why a runtime cannot mount a hostPath without a type. The runtime follows links, and
// creates a directory if the path is missing (containerd: WithMounts). A hostPath with a type is checked by fault.
func RuntimeFault(vol podspec.Volume) error {
	if vol.HostPath == nil || vol.Bound != nil || ptr.Deref(vol.HostPath.Type, v1.HostPathUnset) != v1.HostPathUnset {
		return nil
	}
	return cannotCreate(vol.HostPath.Path)
}

// cannotCreate returns the reason why a missing path of the host cannot be created with its parents. It returns nil if
// podctl may not read a directory.
func cannotCreate(path string) error {
	path = filepath.Clean(path)
	for at := path; ; at = filepath.Dir(at) {
		_, err := os.Stat(at)
		switch {
		case err == nil && at == path, errors.Is(err, fs.ErrPermission):
			return nil
		case err == nil:
			return cannotCreateIn(path, at)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		info, err := os.Lstat(at)
		switch {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link to a path that does not exist", at)
		default:
			return nil // Another process has just created it, so more can be created.
		}
	}
}

// cannotCreateIn returns the reason why the kernel refuses to create files in a directory.
func cannotCreateIn(path, dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil //nolint:nilerr // the file system is unknown, so nothing is known against it
	}
	switch {
	case slices.Contains(kernelTrees(), st.Type):
		return fmt.Errorf("%s does not exist and cannot be created: %s belongs to the kernel", path, dir)
	case st.Flags&unix.ST_RDONLY != 0:
		return fmt.Errorf("%s does not exist and cannot be created: %s is read-only", path, dir)
	}
	return nil
}

// kernelTrees lists the file systems in which only the kernel creates directories.
func kernelTrees() []int64 {
	return []int64{
		unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
		unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC, unix.BINFMTFS_MAGIC, unix.PSTOREFS_MAGIC,
		unix.EFIVARFS_MAGIC, unix.NSFS_MAGIC,
	}
}

// prepareHostPath checks a hostPath, and creates it for the types DirectoryOrCreate and FileOrCreate. The path belongs
// to the machine, so it stays when the pod is deleted. An existing path may go through any links. To create one, podctl
// does not follow links of other users.
func prepareHostPath(vol podspec.Volume) error {
	kind, _ := hostPathKindOf(vol.HostPath)
	err := checkHostPath(vol)
	if kind.create == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := kind.create(vol.HostPath.Path); err != nil {
		return fmt.Errorf("%s.hostPath: creating %s: %w", vol.Path, kind.what, err)
	}
	return checkHostPath(vol)
}

// createDirs creates a directory and its parents with mode 0755.
func createDirs(path string) error {
	dir, err := safefs.MakeAll(path, 0o755, 0o755)
	if err != nil {
		return err
	}
	return dir.Close()
}

// createFile creates an empty file with mode 0644, but no parent directories.
func createFile(path string) error {
	dir, err := safefs.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Touch(filepath.Base(path), 0o644), dir.Close())
}

// noPathError reports the missing path of a local volume.
type noPathError struct{ path string }

func (e *noPathError) Error() string { return fmt.Sprintf("path %q does not exist", e.path) }

// localDir is the directory of a local volume of the API server.
type localDir struct{ *mounter }

// check checks that a local volume is a directory (kubelet: localVolumePlugin.getGlobalLocalPath). A kubelet also
// formats and mounts block devices.
func (m localDir) check() error {
	if err := checkHostPath(m.vol); err != nil {
		return err
	}
	info, err := os.Stat(m.vol.Bound.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &noPathError{m.vol.Bound.Path}
	case err != nil || info.IsDir():
		return err
	case info.Mode()&fs.ModeDevice != 0:
		return fmt.Errorf("podctl cannot mount the device %q of a local volume, only a directory", m.vol.Bound.Path)
	}
	return errors.New("only directory and block device are supported")
}

// prepare gives the directory to the pod's group, if it belongs to another one and the pod may
// change it (kubelet: localVolumeMounter.SetUpAt). It follows links of root only, because others may own directories
// above.
func (m localDir) prepare() error {
	err := m.check()
	if err != nil || m.hasGroup() {
		return err
	}
	dir, err := safefs.OpenDir(m.vol.Bound.Path)
	if err != nil {
		return err
	}
	return errors.Join(m.giveToPod(dir), dir.Close())
}

// hasGroup reports whether the directory has the group that it must have.
func (m localDir) hasGroup() bool {
	group := m.fsGroup()
	if group == nil || m.vol.ReadOnly {
		return true
	}
	info, err := os.Stat(m.vol.Bound.Path)
	return err == nil && groupOf(info) == *group
}
