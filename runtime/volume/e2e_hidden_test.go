//go:build e2e

package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/mounts"
)

// cover binds the state directory on itself, as a kubelet does on a private mount, which hides the mounts below.
func cover(t *testing.T, c Context) {
	t.Helper()
	root := filepath.Dir(filepath.Dir(c.Pod.Dir()))
	if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	if hidden, err := mounts.HiddenBelow(c.Pod.Dir()); err != nil || len(hidden) == 0 {
		t.Fatalf("hidden below %s: %v, %v", c.Pod.Dir(), hidden, err)
	}
}

// TestHiddenMountsGoWithThePod hides a volume in memory and a subPath below a kubelet's bind mount, and mounts them
// again.
func TestHiddenMountsGoWithThePod(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("data"), memoryVolume("tmp", "1Mi"))
	prepare(t, c, "data")
	prepare(t, c, "tmp")
	write(t, filepath.Join(c.dir(t, "data"), "conf"), "text")
	write(t, filepath.Join(c.dir(t, "tmp"), "hidden"), "text")
	subPath(t, c, 0, "conf")
	cover(t, c)
	wantUnprepared(t, c, "tmp")
	prepare(t, c, "tmp")
	wantText(t, subPath(t, c, 0, "conf"), "text")
	wantNothingLeft(t, c)
	if m := mountOf(t, filepath.Dir(filepath.Dir(c.Pod.Dir()))); m == nil {
		t.Error("a bind mount of another program was removed")
	}
}

// TestHiddenSubPathIsReplaced checks that a restarted container gets a new bind on the same path.
func TestHiddenSubPathIsReplaced(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("data"))
	prepare(t, c, "data")
	write(t, filepath.Join(c.dir(t, "data"), "conf", "file"), "text")
	write(t, filepath.Join(c.dir(t, "data"), "one"), "one")
	subPath(t, c, 0, "conf")
	cover(t, c)
	wantText(t, subPath(t, c, 0, "one"), "one")
	wantText(t, filepath.Join(c.dir(t, "data"), "conf", "file"), "text")
	wantNothingLeft(t, c)
}

// TestDirectoryMountedOverThePods checks that mounts below another disk's mount are not touched.
func TestDirectoryMountedOverThePods(t *testing.T) {
	c := newMountedContext(t, memoryVolume("tmp", "1Mi"))
	prepare(t, c, "tmp")
	root := filepath.Dir(filepath.Dir(c.Pod.Dir()))
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=0700"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Pod.Dir(), "volumes", "file"), "of another disk")
	err := RemoveAll(c.Pod)
	if err == nil || !strings.Contains(err.Error(), "another directory is mounted over it") {
		t.Errorf("error %v", err)
	}
	// A process keeps the state directory open that it found.
	if err := unix.Unmount(root, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	wantPrepared(t, c, "tmp")
	if _, err := os.Stat(c.dir(t, "tmp")); err != nil {
		t.Error(err)
	}
	wantNothingLeft(t, c)
}
