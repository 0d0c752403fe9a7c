package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec"
)

// PrepareSubPath binds one path inside a volume to a place of its own and
// returns that place. The path is opened element by element without leaving the
// volume, and what was opened is bound, not the name: whoever swaps a link
// meanwhile gains nothing (kubelet: doBindSubPath).
func PrepareSubPath(c Context, ref podspec.ContainerRef, index int, sub string) (string, error) {
	m := &ref.VolumeMounts[index]
	vol, err := c.find(m.Name)
	if err != nil {
		return "", err
	}
	if !within(sub) {
		return "", fmt.Errorf("subPath %q leads out of volume %s", sub, m.Name)
	}
	base, err := filepath.EvalSymlinks(Path(c.Pod, vol))
	if err != nil {
		return "", fmt.Errorf("opening volume %s: %w", m.Name, err)
	}
	fd, err := openWithin(base, sub)
	if err != nil {
		return "", fmt.Errorf("opening subPath %q of volume %s: %w", sub, m.Name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // only a handle on a path
	target := c.Pod.SubPath(m.Name, ref.Name, index)
	if err = bind(fd, target); err != nil {
		return "", fmt.Errorf("binding subPath %q of volume %s: %w", sub, m.Name, err)
	}
	return target, nil
}

// openWithin opens a path below base, and creates directories that are missing
// with base's mode. The kernel refuses every way out.
func openWithin(base, sub string) (int, error) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return -1, err
	}
	defer root.Close() //nolint:errcheck // only a handle on a path
	if err = makeWithin(root, sub); err != nil {
		return -1, err
	}
	dir, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir) //nolint:errcheck // only a handle on a path
	return unix.Openat2(dir, sub, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// makeWithin creates the directories of a path that do not exist.
func makeWithin(root *os.Root, sub string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	at := ""
	for part := range strings.SplitSeq(sub, "/") {
		at = filepath.Join(at, part)
		_, err := root.Stat(at)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := root.Mkdir(at, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := root.Chmod(at, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// bind mounts what a handle holds onto a target, which is made of the same kind.
// A target that shows the same thing already stays.
func bind(fd int, target string) error {
	var source, have unix.Stat_t
	if err := unix.Fstat(fd, &source); err != nil {
		return err
	}
	if err := unix.Lstat(target, &have); err == nil {
		if have.Dev == source.Dev && have.Ino == source.Ino {
			return nil
		}
		if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	create := makeFile
	if source.Mode&unix.S_IFMT == unix.S_IFDIR {
		create = makeDir
	}
	if err := create(target); err != nil {
		return err
	}
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), target, "", unix.MS_BIND|unix.MS_REC, "")
}

func makeDir(target string) error { return os.MkdirAll(target, 0o750) }

func makeFile(target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}
