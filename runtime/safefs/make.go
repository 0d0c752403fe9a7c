package safefs

import (
	"io/fs"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// mkdirat creates a directory with exactly this mode.
func mkdirat(dir int, name string, perm fs.FileMode) error {
	return withoutUmask(func() error { return unix.Mkdirat(dir, name, modeBits(perm)) })
}

// modeBits returns the bits of a mode with which a directory can be created.
func modeBits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

// withoutUmask makes a system call on a thread whose umask is zero, so that a new file has its mode at once without
// chmod. If a seccomp filter refuses that, the umask of the process applies.
func withoutUmask(call func() error) error {
	done := make(chan error)
	go func() {
		// The thread stays locked, so it ends with the goroutine.
		goruntime.LockOSThread()
		if unix.Unshare(unix.CLONE_FS) == nil {
			unix.Umask(0)
		}
		done <- call()
	}()
	return <-done
}
