package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/filelock"
)

// TestOneAgentForEachRuntime checks that agents of two state directories conflict on one runtime, also through a link
// to its socket, but not on two runtimes. No files are left.
func TestOneAgentForEachRuntime(t *testing.T) {
	dir, sockets := t.TempDir(), t.TempDir()
	socket, link := filepath.Join(sockets, "a.sock"), filepath.Join(sockets, "link.sock")
	if err := errors.Join(os.WriteFile(socket, nil, 0o600), os.Symlink(socket, link)); err != nil {
		t.Fatal(err)
	}
	one, other := Layout{Root: "/state/one"}.Locks(), Layout{Root: "/state/other"}.Locks()
	first, err := one.Runtime(t.Context(), dir, "unix://"+socket)
	if err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range []string{"unix://" + socket, socket, "unix://" + link} {
		locked := (*filelock.LockedError)(nil)
		if _, err = other.Runtime(t.Context(), dir, endpoint); !errors.As(err, &locked) ||
			!strings.Contains(locked.Holder, "(podctl agent of /state/one)") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	second, err := other.Runtime(t.Context(), dir, "unix:///other.sock")
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(first.Unlock(), second.Unlock()); err != nil {
		t.Error(err)
	}
	first, err = other.Runtime(t.Context(), dir, link)
	if err != nil {
		t.Fatal(err)
	}
	if err = first.Unlock(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
