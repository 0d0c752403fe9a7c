package safefs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// UntrustedError reports that another user controls where a path leads or the content of a file.
type UntrustedError struct {
	// Path is the file, directory or link that is not trusted.
	Path string
	// Reason is the reason, which follows the path in a sentence.
	Reason string
}

// Error names the path and the reason.
func (e *UntrustedError) Error() string { return e.Path + " " + e.Reason }

// LinkError reports a symbolic link of another user on the way to a path, who could lead podctl anywhere.
type LinkError struct {
	// Path is the link, and UID its owner.
	Path string
	UID  uint32
}

// Error names the owner of the link and includes advice.
func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link of user %d, which podctl does not follow: "+
		"create the missing directories yourself, or name the target of the link", e.Path, e.UID)
}

// isForeign reports whether a user is not trusted. Trusted users are root, who can do everything anyway, and podctl's
// user.
func isForeign(uid uint32) bool { return uid != 0 && int(uid) != os.Geteuid() }

// Foreign returns the owner of a file, and reports whether it is foreign: neither root nor podctl's user.
func Foreign(info fs.FileInfo) (owner uint32, foreign bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, true
	}
	return stat.Uid, isForeign(stat.Uid)
}

// Mode bits with which others can change a file, or replace one in a directory.
const (
	writableByAll    = unix.S_IWOTH
	writableByOthers = unix.S_IWGRP | unix.S_IWOTH
)

// checkOwner refuses a file of another user.
func (p *place) checkOwner(path string) error {
	if !isForeign(p.stat.Uid) {
		return nil
	}
	return foreignError(path, p.stat.Uid)
}

func foreignError(path string, uid uint32) error {
	return &UntrustedError{
		Path:   path,
		Reason: fmt.Sprintf("belongs to user %d, and podctl runs as %d", uid, os.Geteuid()),
	}
}

// checkMode refuses a file that others can write to.
func (p *place) checkMode(path string, writable uint32) error {
	if p.stat.Mode&writable == 0 {
		return nil
	}
	return &UntrustedError{
		Path:   path,
		Reason: "can be written by others: check its content, then run chmod go-w " + path,
	}
}

// check refuses a file that another user owns or that others can write to.
func (p *place) check(path string, writable uint32) error {
	if err := p.checkOwner(path); err != nil {
		return err
	}
	return p.checkMode(path, writable)
}

// checkParent refuses a directory in which another user could replace a name. With the sticky bit users can replace
// only their own files.
func (p *place) checkParent() error {
	if p.stat.Mode&unix.S_ISVTX != 0 {
		return p.checkOwner(p.path)
	}
	if err := p.check(p.path, writableByAll); err != nil {
		return err
	}
	return p.checkGroups()
}

// isOwnGroup reports whether the members of a group are trusted: root's group, and the private group of podctl's user,
// which has the user's number.
func isOwnGroup(gid uint32) bool {
	return gid == 0 || int(gid) == os.Getegid() && os.Getegid() == os.Geteuid()
}
