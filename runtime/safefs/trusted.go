package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// resolve returns the file that a path leads to. It does not follow links of other users.
func resolve(path string) (*place, error) {
	p, err := walk(path, policy{follow: followOurs, proc: true})
	return p, trusting(path, err)
}

// trusting explains why the walk to a path failed.
func trusting(path string, err error) error {
	if link := (*LinkError)(nil); errors.As(err, &link) {
		return &UntrustedError{
			Path: path,
			Reason: fmt.Sprintf("leads through the link %s of user %d, and podctl runs as %d",
				filepath.Base(link.Path), link.UID, os.Geteuid()),
		}
	}
	return named(path, err)
}

// named replaces the path in an error with the path that the caller knows.
func named(path string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return err
}

// OpenTrusted opens a file for reading. It returns an *UntrustedError if another user controls the content or if it is
// not a regular file, and an *fs.PathError like os.Open.
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

// trustedWay returns the file that a path leads to. It refuses a way on which another user could replace a directory.
func trustedWay(path string) (*place, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p, err := walk(path, policy{follow: followOurs, proc: true, pass: (*place).checkParent})
	return p, trusting(path, err)
}

// CheckParents refuses a path on whose way another user could replace a directory. That is below another user's
// directory, or below one that is writable for all without the sticky bit. A file checked by such a name could be
// another one when it is used. CheckParents skips missing parts.
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

// CheckPrivate refuses an open file that another user owns or can read.
func CheckPrivate(path string, info fs.FileInfo) error {
	if uid, foreign := Foreign(info); foreign {
		return foreignError(path, uid)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return &UntrustedError{
		Path:   path,
		Reason: "can be read by others, who can then find out the values that it protects: run chmod 600 " + path,
	}
}

// CheckDir refuses a directory that another user owns, can write to or could replace.
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

// OpenTrustedDir opens a directory that no other user can replace, according to CheckParents. It is the one whose
// parents were checked. The caller checks owner and mode of the directory itself.
func OpenTrustedDir(path string) (*Dir, error) {
	p, err := trustedWay(path)
	if err != nil {
		return nil, err
	}
	return p.dir()
}

// IsSocket reports whether there is a unix socket at a path. It returns an *UntrustedError for a socket of another
// user, who could answer instead of the runtime.
func IsSocket(path string) (bool, error) {
	p, err := resolve(path)
	if untrusted := (*UntrustedError)(nil); errors.As(err, &untrusted) {
		return false, err
	}
	if err != nil {
		// It does not exist, or cannot be reached.
		return false, nil
	}
	defer p.close()
	if p.kind() != unix.S_IFSOCK {
		return false, nil
	}
	return true, p.checkOwner(path)
}
