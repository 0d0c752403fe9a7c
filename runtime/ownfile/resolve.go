package ownfile

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

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

// maxLinks is how many links are followed on the way to a file, as in the kernel.
const maxLinks = 40

// place is what a path leads to: a descriptor that can be looked at and not read (O_PATH).
type place struct {
	fd   int
	stat unix.Stat_t
	// viaProc is set when the path ends with a link of /proc: /dev/stdout does, and names
	// what this process holds already.
	viaProc bool
}

func (p *place) close() { unix.Close(p.fd) } //nolint:errcheck // nothing was written

// kind is the type of the file, as unix.S_IFREG.
func (p *place) kind() uint32 { return p.stat.Mode & unix.S_IFMT }

// path leads to the very file of the descriptor, whatever its names lead to by now.
func (p *place) path() string { return fmt.Sprintf("/proc/self/fd/%d", p.fd) }

// resolve opens what a path leads to. Links of other users are not followed.
func resolve(path string) (*place, error) {
	start := "."
	if strings.HasPrefix(path, "/") {
		start = "/"
	}
	at, err := openAt(unix.AT_FDCWD, start, unix.O_NOFOLLOW)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	rest, links := strings.Split(path, "/"), 0
	for len(rest) > 0 {
		var next *place
		var more []string
		if next, more, err = at.step(path, rest[0]); err == nil && len(more) > 0 {
			if links++; links > maxLinks {
				next.close()
				err = &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
			}
		}
		if next != at {
			at.close()
		}
		if err != nil {
			return nil, err
		}
		at, rest = next, append(more, rest[1:]...)
	}
	return at, nil
}

// step goes on by one name, which closes nothing. Where the name is a link, it returns the
// names of the link's target and the place to read them from.
func (p *place) step(path, name string) (*place, []string, error) {
	if name == "" || name == "." {
		return p, nil, nil
	}
	next, err := openAt(p.fd, name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if next.kind() != unix.S_IFLNK {
		return next, nil, nil
	}
	defer next.close()
	if !isOurs(next.stat.Uid) {
		return nil, nil, &UntrustedError{Path: path, Reason: fmt.Sprintf("leads through the link %s of user %d, and podctl runs as %d", name, next.stat.Uid, os.Geteuid())}
	}
	target, names, err := p.follow(next, name)
	if err != nil {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return target, names, err
}

// follow returns what a link of ours leads to: the place where its names begin, and the
// names. Only the kernel can follow the links of /proc, whose targets are no paths.
func (p *place) follow(link *place, name string) (*place, []string, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(link.fd, &system); err != nil {
		return nil, nil, err
	}
	if system.Type == unix.PROC_SUPER_MAGIC {
		target, err := openAt(p.fd, name, 0)
		if err == nil {
			target.viaProc = true
		}
		return target, nil, err
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link.fd, "", text)
	if err != nil {
		return nil, nil, err
	}
	start := "."
	if strings.HasPrefix(string(text[:n]), "/") {
		start = "/"
	}
	target, err := openAt(p.fd, start, unix.O_NOFOLLOW)
	return target, strings.Split(string(text[:n]), "/"), err
}

func openAt(dir int, name string, flags int) (*place, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, err
	}
	p := &place{fd: fd}
	if err := unix.Fstat(fd, &p.stat); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// isOurs reports whether a user may decide for podctl: root, who may do everything anyhow,
// and the user that podctl runs as.
func isOurs(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// checkOwner refuses what another user owns.
func (p *place) checkOwner(path string) error {
	if isOurs(p.stat.Uid) {
		return nil
	}
	return &UntrustedError{Path: path, Reason: fmt.Sprintf("belongs to user %d, and podctl runs as %d", p.stat.Uid, os.Geteuid())}
}

// checkMode refuses what others can write to.
func (p *place) checkMode(path string, writable uint32) error {
	if p.stat.Mode&writable == 0 {
		return nil
	}
	return &UntrustedError{Path: path, Reason: "can be written by others: look at what is in it, then run chmod go-w " + path}
}
