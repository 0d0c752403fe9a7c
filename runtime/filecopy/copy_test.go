package filecopy

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func make1(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func link1(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func closing(t *testing.T, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, f)
	return f
}

func TestCopyKeepsModesAndLinks(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	make1(t, src+"/tree/a/run.sh", "run", 0o751)
	make1(t, src+"/tree/set", "id", 0o755|os.ModeSetuid)
	link1(t, "/etc/passwd", src+"/tree/away")
	make1(t, dst+"/new/a/run.sh", "old and longer", 0o600)
	if err := Copy(t.Context(), opened(t, src+"/tree"), opened(t, dst), "new", Options{
		Owner: &Owner{UID: os.Getuid(), GID: os.Getgid()},
	}); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(dst + "/new/a/run.sh"); string(text) != "run" {
		t.Errorf("the file holds %q", text)
	}
	for name, mode := range map[string]os.FileMode{"/new/a/run.sh": 0o751, "/new/set": 0o755 | os.ModeSetuid} {
		if info, err := os.Stat(dst + name); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v: %v", name, info.Mode(), err)
		}
	}
	if err := Copy(t.Context(), opened(t, src+"/tree"), opened(t, dst), "mine", Options{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dst + "/mine/set"); err != nil || info.Mode() != 0o755 {
		t.Errorf("a program with a set-user-ID bit of the copying user has mode %v: %v", info.Mode(), err)
	}
	if target, err := os.Readlink(dst + "/new/away"); err != nil || target != "/etc/passwd" {
		t.Errorf("the link leads to %q: %v", target, err)
	}
}

// TestDestinationLinksAreNotFollowed checks that existing links at the destination are never written through.
func TestDestinationLinksAreNotFollowed(t *testing.T) {
	src, dst, outside := t.TempDir(), t.TempDir(), t.TempDir()
	make1(t, src+"/tree/file", "mine", 0o600)
	make1(t, src+"/tree/dir/file", "mine", 0o600)
	make1(t, outside+"/victim", "theirs", 0o600)
	if err := os.Mkdir(dst+"/tree", 0o755); err != nil {
		t.Fatal(err)
	}
	link1(t, outside+"/victim", dst+"/tree/file")
	link1(t, outside, dst+"/tree/dir")
	err := Copy(t.Context(), opened(t, src+"/tree"), opened(t, dst), "tree", Options{})
	if err == nil || !strings.Contains(err.Error(), "tree/dir") {
		t.Errorf("a link in the place of a directory was followed: %v", err)
	}
	if text, _ := os.ReadFile(outside + "/victim"); string(text) != "theirs" {
		t.Errorf("a file outside holds %q", text)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("%d files outside, one is theirs", len(entries))
	}
	for _, name := range []string{"..", ".", "", "a/b"} {
		if err := Copy(t.Context(), opened(t, src+"/tree"), opened(t, dst), name, Options{}); err == nil {
			t.Errorf("a copy was written to the name %q", name)
		}
	}
}

func TestRootKeepsPathsIn(t *testing.T) {
	base := t.TempDir()
	make1(t, base+"/secret", "outside", 0o600)
	make1(t, base+"/root/etc/hosts", "inside", 0o600)
	link1(t, "/etc/hosts", base+"/root/absolute")
	link1(t, "../../secret", base+"/root/up")
	root, err := OpenRoot(opened(t, base), "root")
	if err != nil {
		t.Fatal(err)
	}
	closing(t, root)
	f, err := root.Open("/absolute")
	if err != nil {
		t.Fatalf("an absolute link begins at the root: %v", err)
	}
	closing(t, f)
	for _, name := range []string{"/up", "../secret", "/etc/../../secret"} {
		if f, err := root.Open(name); err == nil {
			closing(t, f)
			t.Errorf("%s leads out of the root", name)
		}
	}
	for _, c := range []struct{ name, dir, base string }{
		{"/etc", "/etc", "x"}, {"/etc/new", "/etc", "new"}, {"/etc/hosts", "/etc", "hosts"},
	} {
		dir, name, err := root.Target(c.name, "x")
		if err != nil || name != c.base {
			t.Errorf("%s is written as %q: %v", c.name, name, err)
			continue
		}
		closing(t, dir)
	}
	if _, _, err := root.Target("/absent/", "x"); err == nil {
		t.Error("a directory that is not there was accepted")
	}
}

// TestCopySkipsDevicesAndSetuid checks that devices, pipes and set-user-ID programs are not copied from a container.
func TestCopySkipsDevicesAndSetuid(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	make1(t, src+"/tree/set", "id", 0o755|os.ModeSetuid|os.ModeSetgid)
	if err := unix.Mkfifo(src+"/tree/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"tree/pipe"}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(src+"/tree/zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Fatal(err)
		}
		want = append(want, "tree/zero")
	}
	var skipped []string
	err := Copy(t.Context(), opened(t, src+"/tree"), opened(t, dst), "tree", Options{
		Skipped: func(name, _ string) { skipped = append(skipped, name) },
	})
	if slices.Sort(skipped); err != nil || !slices.Equal(skipped, want) {
		t.Errorf("left out are %v, not %v (%v)", skipped, want, err)
	}
	if info, err := os.Stat(dst + "/tree/set"); err != nil || info.Mode() != 0o755 {
		t.Errorf("the program: %v %v", info.Mode(), err)
	}
	for _, name := range want {
		if _, err := os.Lstat(dst + "/" + name); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
}
