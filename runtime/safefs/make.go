package safefs

import (
	"errors"
	"io/fs"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// Make opens a directory in the directory, which is made with exactly this mode if it does
// not exist. One that exists keeps its mode.
func (d *Dir) Make(name string, perm fs.FileMode) (*Dir, error) {
	sub, err := d.Open(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	err = d.do("mkdir", name, func(fd int) error { return mkdirat(fd, name, perm) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.Open(name)
}

// MakeSub opens a directory some levels below. Those that are missing are made, the last
// one with perm and the others with above.
func (d *Dir) MakeSub(above, perm fs.FileMode, names ...string) (*Dir, error) {
	level := 0
	return d.descend(names, func(at *Dir, name string) (*Dir, error) {
		level++
		if level == len(names) {
			return at.Make(name, perm)
		}
		return at.Make(name, above)
	})
}

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
