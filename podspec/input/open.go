package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// File systems that are interfaces of the kernel. Reading such a file may block forever, have side effects, or return
// different data each time.
const (
	fuseControl = 0x65735543
	messages    = 0x19800202
	nfsServer   = 0x6e667364
	pipeOfRPC   = 0x67596969
	configuring = 0x62656570
)

// ofKernel reports whether a file system is an interface of the kernel.
func ofKernel(magic int64) bool {
	return slices.Contains([]int64{
		unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.TRACEFS_MAGIC, unix.DEBUGFS_MAGIC,
		unix.SECURITYFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC,
		unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
		unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC, unix.RDTGROUP_SUPER_MAGIC, unix.XENFS_SUPER_MAGIC,
		unix.DEVPTS_SUPER_MAGIC,
		configuring, fuseControl, messages, nfsServer, pipeOfRPC,
	}, magic)
}

// Reasons why a file is not opened.
var (
	errNotRegular = errors.New("it is not a regular file")
	errNotFile    = errors.New("it is neither a file nor a directory")
	errNotInput   = errors.New("it is neither a file nor a pipe (- reads standard input)")
	errOfKernel   = errors.New(
		"it is on a file system of the kernel, such as /proc or /sys; podctl reads only stored files")
	errNoWriter = errors.New("no program has opened the pipe for writing")
)

// Open opens a regular file for reading, following links. It refuses other files: a pipe may never have a writer, and
// opening a device may have side effects.
func Open(path string) (*os.File, error) { return open(path, errNotRegular, unix.S_IFREG) }

// OpenTree opens a regular file or a directory for reading.
func OpenTree(path string) (*os.File, error) {
	return open(path, errNotFile, unix.S_IFREG, unix.S_IFDIR)
}

// open opens a file of one of these types. It returns refused for other types.
func open(path string, refused error, kinds ...uint32) (*os.File, error) {
	h, err := openHandle(path)
	if err != nil {
		return nil, err
	}
	defer h.close()
	if !slices.ContainsFunc(kinds, h.is) {
		return nil, h.refuse(refused)
	}
	return h.reopen()
}

// OpenNamed opens a file that a user named in a command or a flag: a regular file, a pipe, or /dev/null. It waits up to
// ten seconds for a program that writes to the pipe.
func OpenNamed(ctx context.Context, path string) (*os.File, error) {
	h, err := openHandle(path)
	if err != nil {
		return nil, err
	}
	defer h.close()
	switch {
	case h.is(unix.S_IFIFO):
		return h.openPipe(ctx)
	case !h.is(unix.S_IFREG) && !h.isNull():
		return nil, h.refuse(errNotInput)
	}
	return h.reopen()
}

// handle is a file opened with O_PATH, not for reading.
type handle struct {
	fd   int
	path string
	stat unix.Stat_t
}

// openHandle resolves a path without side effects on the file.
func openHandle(path string) (*handle, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	h := &handle{fd: fd, path: path}
	var system unix.Statfs_t
	err = unix.Fstat(fd, &h.stat)
	if err == nil {
		err = unix.Fstatfs(fd, &system)
	}
	if err == nil && ofKernel(int64(system.Type)) { //nolint:unconvert // another type on other machines
		err = errOfKernel
	}
	if err != nil {
		h.close()
		return nil, h.refuse(err)
	}
	return h, nil
}

func (h *handle) close() { unix.Close(h.fd) } //nolint:errcheck // nothing was written

func (h *handle) is(kind uint32) bool { return h.stat.Mode&unix.S_IFMT == kind }

// isNull reports whether the file is /dev/null, which counts as an empty file.
func (h *handle) isNull() bool { return h.is(unix.S_IFCHR) && h.stat.Rdev == unix.Mkdev(1, 3) }

func (h *handle) refuse(err error) error { return &fs.PathError{Op: "open", Path: h.path, Err: err} }

// reopen opens the file for reading. It uses the handle, so the path may have changed.
func (h *handle) reopen() (*os.File, error) {
	fd, err := reopen(h.fd, unix.O_NONBLOCK)
	if err != nil {
		return nil, h.refuse(err)
	}
	return os.NewFile(uintptr(fd), h.path), nil
}

func reopen(handle, flags int) (fd int, err error) {
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", handle), unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC|flags, 0)
}

// pipeTimeout limits the wait for a program that opens a pipe for writing. The time for writing has no limit.
const pipeTimeout = 10 * time.Second

// openPipe waits for a writer. At the deadline it abandons the waiting goroutine, which has its own descriptor.
func (h *handle) openPipe(ctx context.Context) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, h.refuse(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pipeTimeout, fmt.Errorf("%w for %s", errNoWriter, pipeTimeout))
	defer cancel()
	fd, err := Until(ctx, func() (int, error) {
		defer unix.Close(own) //nolint:errcheck // nothing was written
		return reopen(own, 0)
	})
	if err == nil {
		// A non-blocking descriptor lets a reader be interrupted.
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, h.refuse(err)
	}
	return os.NewFile(uintptr(fd), h.path), nil
}
