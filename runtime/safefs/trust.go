package safefs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// UntrustedError says that somebody else decides what a path leads to or what a file holds.
type UntrustedError struct {
	// Path is the file, directory or link that is not trusted.
	Path string
	// Reason says why not, and follows the path in a sentence.
	Reason string
}

// Error names the path and the reason.
func (e *UntrustedError) Error() string { return e.Path + " " + e.Reason }

// LinkError says that a symbolic link on the way to a path belongs to another user, who
// could lead podctl anywhere with it.
type LinkError struct {
	// Path is the link, UID its owner.
	Path string
	UID  uint32
}

// Error says whose link it is and what to do.
func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link of user %d, which podctl does not follow: make what is missing yourself, or name the path that the link leads to", e.Path, e.UID)
}

// isForeign reports whether a user may not decide for podctl. Root may, who can do everything
// anyhow, and the user that podctl runs as.
func isForeign(uid uint32) bool { return uid != 0 && int(uid) != os.Geteuid() }

// Foreign reports whether a file belongs to a user who may not decide for podctl, and who
// that is: anybody but root and the user that podctl runs as.
func Foreign(info fs.FileInfo) (owner uint32, foreign bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, true
	}
	return stat.Uid, isForeign(stat.Uid)
}

// The bits of a mode by which others can change a file, or put another one into a directory.
const (
	writableByAll    = unix.S_IWOTH
	writableByOthers = unix.S_IWGRP | unix.S_IWOTH
)

// checkOwner refuses what another user owns.
func (p *place) checkOwner(path string) error {
	if !isForeign(p.stat.Uid) {
		return nil
	}
	return foreignError(path, p.stat.Uid)
}

func foreignError(path string, uid uint32) error {
	return &UntrustedError{Path: path, Reason: fmt.Sprintf("belongs to user %d, and podctl runs as %d", uid, os.Geteuid())}
}

// checkMode refuses what others can write to.
func (p *place) checkMode(path string, writable uint32) error {
	if p.stat.Mode&writable == 0 {
		return nil
	}
	return &UntrustedError{Path: path, Reason: "can be written by others: look at what is in it, then run chmod go-w " + path}
}

// check refuses what another user owns, or others can write to.
func (p *place) check(path string, writable uint32) error {
	if err := p.checkOwner(path); err != nil {
		return err
	}
	return p.checkMode(path, writable)
}

// checkParent refuses a directory in which another user could put something else under a
// name. With the sticky bit he can exchange only what is his own.
func (p *place) checkParent() error {
	if p.stat.Mode&unix.S_ISVTX != 0 {
		return p.checkOwner(p.path)
	}
	if err := p.check(p.path, writableByAll); err != nil {
		return err
	}
	return p.checkGroups()
}

// isOwnGroup reports whether the members of a group may decide for podctl: that of root, and the private group of the user that
// podctl runs as, which has the user's number.
func isOwnGroup(gid uint32) bool {
	return gid == 0 || int(gid) == os.Getegid() && os.Getegid() == os.Geteuid()
}
