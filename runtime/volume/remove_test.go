package volume

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemoveAllKeepsCheckpoint(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"), configMapVolume("conf"))
	prepare(t, c, "tmp")
	prepare(t, c, "conf")
	if err := WriteEtcHosts(c.Pod, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pod.TerminationLogs("app").New(); err != nil {
		t.Fatal(err)
	}
	write(t, c.Pod.Checkpoint().Path(), "{}")
	write(t, filepath.Join(c.dir(t, "tmp"), "sub", "data"), "x")
	for range 2 {
		if err := RemoveAll(c.Pod); err != nil {
			t.Fatal(err)
		}
	}
	if left := names(t, c.Pod.Dir()); len(left) != 1 || left[0] != "checkpoint.json" {
		t.Errorf("remaining files %v, want only the checkpoint", left)
	}
	if err := c.Pod.Checkpoint().Remove(); err != nil {
		t.Error(err)
	}
	if err := RemoveAll(c.Pod); err != nil {
		t.Errorf("removal of a removed pod: %v", err)
	}
}

// TestReclaim checks that the volumes and the range of ids of an ended pod are removed, and its other files stay.
func TestReclaim(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"), configMapVolume("conf"))
	if Remain(c.Pod) {
		t.Error("a pod without files has volumes")
	}
	prepare(t, c, "tmp")
	prepare(t, c, "conf")
	if _, err := c.Pod.IDs().Allocate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pod.TerminationLogs("app").New(); err != nil {
		t.Fatal(err)
	}
	if err := WriteEtcHosts(c.Pod, []byte("x")); err != nil {
		t.Fatal(err)
	}
	write(t, c.Pod.Checkpoint().Path(), "{}")
	if !Remain(c.Pod) {
		t.Error("the volumes are not found")
	}
	for range 2 {
		if err := Reclaim(c.Pod); err != nil {
			t.Fatal(err)
		}
	}
	if left := names(t, c.Pod.Dir()); !slices.Equal(left, []string{"checkpoint.json", "containers", "etc-hosts"}) || Remain(c.Pod) {
		t.Errorf("remaining files %v", left)
	}
}

func TestRemoveAllFollowsNoLinks(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	outside := t.TempDir()
	write(t, filepath.Join(outside, "dir", "file"), "the machine's")
	dir := c.dir(t, "tmp")
	symlink(t, outside, filepath.Join(dir, "out"))
	symlink(t, filepath.Join(outside, "dir", "file"), filepath.Join(dir, "file"))
	symlink(t, "/", filepath.Join(dir, "root"))
	symlink(t, "nowhere", filepath.Join(dir, "dangling"))
	mkfifo(t, filepath.Join(dir, "pipe"))
	if err := os.Link(filepath.Join(outside, "dir", "file"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := RemoveAll(c.Pod); err != nil {
		t.Fatal(err)
	}
	wantGone(t, dir)
	wantText(t, filepath.Join(outside, "dir", "file"), "the machine's")
}

// TestRemovalDoesNotDependOnDepth removes a tree deeper than the maximum path length and the maximum number of open
// files.
func TestRemovalDoesNotDependOnDepth(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	fd, err := unix.Open(c.dir(t, "tmp"), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if err := unix.Mkdirat(fd, "down", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "down", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	limitOpenFiles(t, 250)
	if err := RemoveAll(c.Pod); err != nil {
		t.Fatal(err)
	}
	if left := names(t, c.Pod.Dir()); len(left) != 0 {
		t.Errorf("remaining files %v", left)
	}
}

func limitOpenFiles(t *testing.T, limit uint64) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
}

func TestRemovalContinuesAfterAnInterruption(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	write(t, filepath.Join(c.Pod.Dir(), ".removing-0", "file"), "left by a removal that was killed")
	write(t, filepath.Join(c.Pod.Dir(), ".checkpoint.json123"), "left by a writer that was killed")
	write(t, filepath.Join(c.Pod.Dir(), "userns"), "{}")
	if err := RemoveAll(c.Pod); err != nil {
		t.Fatal(err)
	}
	if left := names(t, c.Pod.Dir()); len(left) != 0 {
		t.Errorf("remaining files %v", left)
	}
}

func TestMarkersGoFirst(t *testing.T) {
	c := newContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	write(t, filepath.Join(c.Pod.Dir(), "aaa"), "")
	write(t, c.Pod.Checkpoint().Path(), "")
	entries, err := os.ReadDir(c.Pod.Dir())
	if err != nil {
		t.Fatal(err)
	}
	got := removalOrder(c.Pod, entries)
	if len(got) != 3 || got[0] != "plugins" || got[1] != "aaa" || got[2] != "volumes" {
		t.Errorf("order of removal %v, want the markers first and no checkpoint", got)
	}
}
