package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// EtcHostsMax is the maximum size of a hosts file in bytes. Containers can write to it.
const EtcHostsMax = 1 << 20

// Limits for a termination message in bytes. A kubelet reads the last 4096.
const (
	terminationMax = 64 << 10
	terminationEnd = 4096
)

// TrimFiles frees the disk space that containers use through files that podctl mounts into them: the hosts file and the
// termination messages. A container can make them as large as the disk. TrimFiles keeps the end and the size of a
// message, because a container that continues to write continues at that offset. A tmpfs would limit the files, but it
// needs a mount for each pod, loses messages with a reboot, and needs Linux 6.3 with user namespaces.
func (p Pod) TrimFiles() error {
	dir, err := p.Open(p.Dir())
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	if err = trimFile(dir, filepath.Base(p.EtcHosts()), trimHosts); err == nil {
		err = trimMessages(dir, filepath.Base(p.TerminationLogs("").above()))
	}
	return safefs.Wrapf(err, "trimming files of pod %s", p.uid)
}

// trimMessages trims the messages of all containers.
func trimMessages(pod *safefs.Dir, name string) error {
	return eachIn(pod, name, func(containers *safefs.Dir, container string) error {
		return eachIn(containers, container, func(messages *safefs.Dir, message string) error {
			return trimFile(messages, message, trimMessage)
		})
	})
}

// eachIn calls work for each name in a directory. A missing directory is not an error.
func eachIn(parent *safefs.Dir, name string, work func(dir *safefs.Dir, name string) error) error {
	dir, err := parent.Open(name)
	if safefs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	entries, err := dir.Entries()
	for _, entry := range entries {
		err = errors.Join(err, work(dir, entry.Name()))
	}
	return err
}

// trimFile calls trim for a regular file. It ignores other files and missing ones.
func trimFile(dir *safefs.Dir, name string, trim func(*os.File, *syscall.Stat_t) error) error {
	handle, info, err := dir.Handle(name)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	defer handle.Close() //nolint:errcheck // A handle.
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := safefs.Reopen(handle, os.O_WRONLY, dir.Join(name))
	if err != nil {
		return fmt.Errorf("%s: %w", dir.Join(name), err)
	}
	stat := info.Sys().(*syscall.Stat_t) // of every file on Linux
	return errors.Join(trim(f, stat), f.Close())
}

func trimHosts(f *os.File, stat *syscall.Stat_t) error {
	if stat.Size <= EtcHostsMax {
		return nil
	}
	return f.Truncate(EtcHostsMax)
}

// trimMessage frees the part before the end of a message. If the file system cannot do that, the message is lost.
func trimMessage(f *os.File, stat *syscall.Stat_t) error {
	if stat.Blocks*statedir.BlockSize <= terminationMax || stat.Size <= terminationEnd {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, stat.Size-terminationEnd)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(0)
	}
	if err != nil {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}
