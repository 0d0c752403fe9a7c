package safefs

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// setACL gives a directory of root an ACL: the owner's permissions, an entry for a user or group, the group's
// permissions, a mask, and those of others.
func setACL(t *testing.T, path string, entry aclEntry, group, mask uint16) {
	t.Helper()
	const userObj, aclMask, others, anyone = 0x01, 0x10, 0x20, ^uint32(0)
	text := binary.LittleEndian.AppendUint32(nil, 2)
	add := func(e aclEntry) {
		text = binary.LittleEndian.AppendUint32(
			binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(text, e.tag), e.permissions), e.id,
		)
	}
	add(aclEntry{userObj, 7, anyone})
	if entry.tag == aclUser {
		add(entry)
	}
	add(aclEntry{aclGroupObj, group, anyone})
	if entry.tag == aclGroup {
		add(entry)
	}
	add(aclEntry{aclMask, mask, anyone})
	add(aclEntry{others, 5, anyone})
	err := unix.Setxattr(path, aclAttribute, text, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("the file system of temporary files has no ACLs")
	}
	must(t, err)
}

// TestACLs checks that a user or group with write permission in an ACL counts like one with permission in the mode.
func TestACLs(t *testing.T) {
	needsRoot(t)
	for name, c := range map[string]struct {
		entry       aclEntry
		group, mask uint16
		want        string
	}{
		"a foreign user":                {aclEntry{aclUser, 7, foreignUID}, 5, 7, "can be written by user 65534 (ACL)"},
		"a foreign group":               {aclEntry{aclGroup, 7, foreignUID}, 5, 7, "can be written by group 65534 (ACL)"},
		"a foreign user who reads":      {aclEntry{aclUser, 5, foreignUID}, 7, 7, ""},
		"a foreign user below the mask": {aclEntry{aclUser, 7, foreignUID}, 5, 5, ""},
		"root":                          {aclEntry{aclUser, 7, 0}, 5, 7, ""},
		"the group of root":             {aclEntry{aclGroup, 7, 0}, 5, 7, ""},
	} {
		dir := filepath.Join(t.TempDir(), "shared")
		own := filepath.Join(dir, "own")
		must(t, os.MkdirAll(own, 0o755), os.WriteFile(filepath.Join(own, "tool"), nil, 0o755))
		setACL(t, dir, c.entry, c.group, c.mask)
		program, toolErr := LookPath("tool", own)
		if toolErr == nil {
			must(t, program.Close())
		}
		for what, err := range map[string]error{"directory": CheckDir(own), "program": toolErr} {
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s above a %s: %v", name, what, err)
			}
		}
		if c.want == "" {
			continue
		}
		if err := CheckDir(dir); err == nil {
			t.Errorf("%s: the directory itself is trusted", name)
		}
	}
}
