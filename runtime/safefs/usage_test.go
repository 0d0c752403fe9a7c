package safefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// counted returns the disk usage of a tree, by the kubelet's rule: an inode with several links counts once.
func counted(t *testing.T, root string) Usage {
	t.Helper()
	var sum Usage
	seen := map[uint64]bool{}
	err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if !seen[st.Ino] {
			seen[st.Ino] = true
			sum.Bytes += st.Blocks * blockSize
			sum.Inodes++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func write(t *testing.T, size int, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, make([]byte, size), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func usageOf(t *testing.T, path string, yield func() error) Usage {
	t.Helper()
	dir, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	used, err := dir.Usage(yield)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func goOn() error { return nil }

// TestUsage compares the usage of trees with the kubelet's way to count.
func TestUsage(t *testing.T) {
	outside := t.TempDir()
	write(t, 5<<20, outside, "large")
	for name, c := range map[string]struct {
		make func(root string) error
		// files is the number of files and directories, with the root.
		files int64
	}{
		"nothing": {func(string) error { return nil }, 1},
		"files in directories": {func(root string) error {
			write(t, 10<<10, root, "a")
			write(t, 1, root, "b/c/d")
			write(t, 0, root, "b/empty")
			return nil
		}, 6},
		"a sparse file": {func(root string) error { return os.Truncate(write(t, 1, root, "sparse"), 1<<30) }, 2},
		"links": {func(root string) error {
			file := write(t, 100<<10, root, "a/one")
			write(t, 8<<10, root, "other")
			return errors.Join(os.Link(file, filepath.Join(root, "two")), os.Link(file, filepath.Join(root, "a/three")))
		}, 4},
		"symbolic links": {func(root string) error {
			return errors.Join(
				os.Symlink(outside, filepath.Join(root, "dir")),
				os.Symlink(filepath.Join(outside, "large"), filepath.Join(root, "file")),
				os.Symlink(".", filepath.Join(root, "loop")),
				os.Symlink("/missing", filepath.Join(root, "none")))
		}, 5},
		"special files and names": {func(root string) error {
			write(t, 1, root, "...")
			write(t, 1, root, "-rf *\n\xff")
			write(t, 1, root, strings.Repeat("n", 255))
			return errors.Join(unix.Mkfifo(filepath.Join(root, "pipe"), 0o600), os.Mkdir(filepath.Join(root, "none"), 0))
		}, 6},
		"more names than a batch": {func(root string) error {
			for i := range 3*usageBatch + 1 {
				write(t, i%3, root, fmt.Sprint("dir", i), "file")
			}
			return nil
		}, 1 + 2*(3*usageBatch+1)},
	} {
		root := t.TempDir()
		if err := c.make(root); err != nil {
			t.Fatal(err)
		}
		want := counted(t, root)
		if got := usageOf(t, root, goOn); got != want || got.Inodes != c.files {
			t.Errorf("%s: %+v, want %+v and %d files", name, got, want, c.files)
		}
	}
}

// TestFileUsage checks that only files directly in the directory count.
func TestFileUsage(t *testing.T) {
	root := t.TempDir()
	write(t, 5000, root, "0.log")
	write(t, 1<<20, root, "dir/0.log")
	dir, err := OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	want := counted(t, filepath.Join(root, "0.log"))
	if got, err := dir.FileUsage(goOn); err != nil || got != want {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
}

// TestUsageOfDeepTree checks that the walk ends in a tree that is deeper than any path may be.
func TestUsageOfDeepTree(t *testing.T) {
	root := t.TempDir()
	at, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const depth = 3000
	for range depth {
		if err := unix.Mkdirat(at, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err = errors.Join(err, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if err := unix.Close(at); err != nil {
		t.Fatal(err)
	}
	if got := usageOf(t, root, goOn); got.Inodes != usageDepth+1 {
		t.Errorf("%d directories", got.Inodes)
	}
}

// TestUsageOfMounts checks that nothing counts that is mounted in the tree, and that a mounted root counts.
func TestUsageOfMounts(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	write(t, 1<<20, other, "file")
	mount := func(source, target, kind string, flags uintptr) {
		t.Helper()
		if err := os.MkdirAll(target, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(source, target, kind, flags, ""); errors.Is(err, unix.EPERM) {
			t.Skip("nothing can be mounted here")
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(target, 0); err != nil {
				t.Error(err)
			}
		})
	}
	mount("memory", filepath.Join(root, "memory"), "tmpfs", 0)
	mount(other, filepath.Join(root, "bound"), "", unix.MS_BIND)
	write(t, 1<<20, root, "memory", "file")
	write(t, 1<<10, root, "file")
	want := counted(t, filepath.Join(root, "file"))
	if got := usageOf(t, root, goOn); got.Inodes != 2 || got.Bytes >= 1<<20 || got.Bytes < want.Bytes {
		t.Errorf("%+v", got)
	}
	if got := usageOf(t, filepath.Join(root, "memory"), goOn); got.Inodes != 2 || got.Bytes < 1<<20 {
		t.Errorf("a mounted root: %+v", got)
	}
}

// TestUsageWhileChanging checks a tree that changes during the walk: directories vanish, or become links to others. The
// walk stays in the tree.
func TestUsageWhileChanging(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, 5<<20, outside, "large")
	for i := range 3 * usageBatch {
		write(t, 1, root, fmt.Sprint(i), "deep/file")
	}
	calls := 0
	got := usageOf(t, root, func() error {
		calls++
		for i := range 3 * usageBatch {
			path := filepath.Join(root, fmt.Sprint(i))
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			if err := os.Symlink(outside, path); err != nil {
				return err
			}
		}
		return nil
	})
	if got.Bytes >= 5<<20 || calls == 0 {
		t.Errorf("%+v after %d calls", got, calls)
	}
}

// TestUsageEnds checks that an error of yield ends the walk, with the usage so far.
func TestUsageEnds(t *testing.T) {
	root := t.TempDir()
	for i := range 3 * usageBatch {
		write(t, 1, root, fmt.Sprint(i))
	}
	dir, err := OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	enough := errors.New("enough")
	got, err := dir.Usage(func() error { return enough })
	if !errors.Is(err, enough) || got.Inodes != usageBatch+1 {
		t.Errorf("%+v %v", got, err)
	}
	w := &usageWalk{yield: goOn, left: usageBatch, top: unix.Statx_t{}}
	if w.top, err = statx(dir.fd(), ""); err != nil {
		t.Fatal(err)
	}
	if err = w.walk(dir.fd(), ".", 1); !errors.Is(err, errCounted) || w.sum().Inodes != usageBatch {
		t.Errorf("with many files: %v after %+v", err, w.sum())
	}
}
