package safefs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// The extended attribute with the ACL of a file, and its format (linux/posix_acl_xattr.h).
const (
	aclAttribute = "system.posix_acl_access"
	aclHeader    = 4
	aclEntrySize = 8
	aclMax       = 64 << 10

	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclWrite    = 0x02
)

// aclEntry holds the permissions of one user or group.
type aclEntry struct {
	tag, permissions uint16
	id               uint32
}

// readACL returns the entries of a file's ACL, or none if it has only a mode.
func (p *place) readACL() ([]aclEntry, error) {
	text := make([]byte, aclMax)
	n, err := unix.Getxattr(procPath(p.fd), aclAttribute, text)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "getxattr", Path: p.path, Err: err}
	}
	var entries []aclEntry
	for text = text[min(aclHeader, n):n]; len(text) >= aclEntrySize; text = text[aclEntrySize:] {
		entries = append(entries, aclEntry{
			tag:         binary.LittleEndian.Uint16(text),
			permissions: binary.LittleEndian.Uint16(text[2:]),
			id:          binary.LittleEndian.Uint32(text[4:]),
		})
	}
	return entries, nil
}

// checkGroups refuses a directory that a foreign group, or a foreign user or group of its ACL, can write to. It reads
// the ACL only if the mode allows the group to write: with an ACL, the group bits are the mask that limits all entries.
func (p *place) checkGroups() error {
	if p.stat.Mode&unix.S_IWGRP == 0 {
		return nil
	}
	entries, err := p.readACL()
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		entries = []aclEntry{{tag: aclGroupObj, permissions: aclWrite}}
	}
	for _, e := range entries {
		if writer := e.foreigner(p.stat.Gid); writer != "" {
			return &UntrustedError{
				Path:   p.path,
				Reason: fmt.Sprintf("can be written by %s: check its content, then run chmod g-w %s", writer, p.path),
			}
		}
	}
	return nil
}

// foreigner returns the foreign user or group of an entry with write permission, or an empty string. group is that of
// the file.
func (e aclEntry) foreigner(group uint32) string {
	switch {
	case e.permissions&aclWrite == 0:
	case e.tag == aclUser && isForeign(e.id):
		return fmt.Sprintf("user %d (ACL)", e.id)
	case e.tag == aclGroup && !isOwnGroup(e.id):
		return fmt.Sprintf("group %d (ACL)", e.id)
	case e.tag == aclGroupObj && !isOwnGroup(group):
		return fmt.Sprintf("group %d", group)
	}
	return ""
}
