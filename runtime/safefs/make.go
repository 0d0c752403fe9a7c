package safefs

import (
	"io/fs"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// mkdirat makes a directory with exactly this mode.
func mkdirat(dir int, name string, perm fs.FileMode) error {
	return withoutUmask(func() error { return unix.Mkdirat(dir, name, modeBits(perm)) })
}

// modeBits are the bits of a mode that a directory can be made with.
func modeBits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

// withoutUmask makes a system call on a thread that has a umask of its own, which takes
// nothing away: what is made has its mode at once, and needs no chmod. Where a filter of system calls
// refuses that, the umask of the process counts.
func withoutUmask(call func() error) error {
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, as nobody unlocks it.
		goruntime.LockOSThread()
		if unix.Unshare(unix.CLONE_FS) == nil {
			unix.Umask(0)
		}
		done <- call()
	}()
	return <-done
}
