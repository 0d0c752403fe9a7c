package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// resolve goes to what a path leads to. Links of other users are not followed.
func resolve(path string) (*place, error) {
	p, err := walk(path, policy{follow: followOurs, proc: true})
	return p, trusting(path, err)
}

// trusting says of a path that was asked for why the walk did not get there.
func trusting(path string, err error) error {
	if link := (*LinkError)(nil); errors.As(err, &link) {
		return &UntrustedError{Path: path, Reason: fmt.Sprintf("leads through the link %s of user %d, and podctl runs as %d", filepath.Base(link.Path), link.UID, os.Geteuid())}
	}
	return named(path, err)
}

// named gives an error the path that the caller knows in place of the one that was opened.
func named(path string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return err
}

// OpenTrusted opens a file for reading. It returns an *UntrustedError where somebody else
// decides what is in it, or where it is no regular file, and an *fs.PathError as os.Open does.
func OpenTrusted(path string) (*os.File, error) {
	p, err := resolve(path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.kind() != unix.S_IFREG {
		return nil, &UntrustedError{Path: path, Reason: "is not a regular file"}
	}
	if err = p.check(path, writableByOthers); err != nil {
		return nil, err
	}
	return p.open(path, unix.O_RDONLY)
}

func (p *place) open(path string, flags int) (*os.File, error) {
	f, err := reopen(p.fd, flags, path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// trustedWay goes to what a path leads to. It refuses a way on which another user could put another directory.
func trustedWay(path string) (*place, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p, err := walk(path, policy{follow: followOurs, proc: true, pass: (*place).checkParent})
	return p, trusting(path, err)
}

// CheckParents refuses a path on whose way another user could put another directory: below
// one that he owns, or that everybody may write to without the sticky bit. What is checked
// under such a name need not be what is used a moment later. Parts that are missing are
// passed over.
func CheckParents(path string) error {
	p, err := trustedWay(path)
	if err == nil {
		p.close()
	}
	if NotExist(err) {
		return nil
	}
	return err
}

// CheckPrivate refuses an open file that another user owns, or that others can read.
func CheckPrivate(path string, info fs.FileInfo) error {
	if uid, foreign := Foreign(info); foreign {
		return foreignError(path, uid)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return &UntrustedError{Path: path, Reason: "can be read by others, who can then find out what it protects: run chmod 600 " + path}
}

// CheckDir refuses a directory that another user owns, can write to or could exchange.
func CheckDir(path string) error {
	p, err := trustedWay(path)
	if err != nil {
		return err
	}
	defer p.close()
	if p.kind() != unix.S_IFDIR {
		return &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	return p.check(path, writableByOthers)
}

// OpenTrustedDir opens a directory of which CheckParents says that nobody else can exchange it: the very one to which the way was checked.
// Owner and mode of the directory itself are the caller's to look at.
func OpenTrustedDir(path string) (*Dir, error) {
	p, err := trustedWay(path)
	if err != nil {
		return nil, err
	}
	return p.dir()
}

// IsSocket reports whether there is a unix socket at a path. It returns an *UntrustedError
// for one that another user made: he would answer in the runtime's place.
func IsSocket(path string) (bool, error) {
	p, err := resolve(path)
	if untrusted := (*UntrustedError)(nil); errors.As(err, &untrusted) {
		return false, err
	}
	if err != nil {
		// There is none, or it cannot be reached.
		return false, nil
	}
	defer p.close()
	if p.kind() != unix.S_IFSOCK {
		return false, nil
	}
	return true, p.checkOwner(path)
}
