package safefs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// TestNamesAreSingleElements checks that every method refuses names that are not single elements of a path, and changes
// nothing.
func TestNamesAreSingleElements(t *testing.T) {
	base := t.TempDir()
	if err := os.MkdirAll(filepath.Join(base, "inside", "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := open(t, filepath.Join(base, "inside"))
	for _, name := range []string{"", ".", "..", "../victim", "a/b", "/", "/etc", "a\x00", "a/"} {
		_, openErr := d.Open(name)
		_, makeErr := d.Make(name, 0o700)
		_, createErr := d.Create(name, 0o600)
		_, fileErr := d.OpenFile(name, os.O_RDONLY, 0)
		_, lookErr := d.Lstat(name)
		_, linkErr := d.Readlink(name)
		_, subErr := d.Sub("a", name)
		_, makeSubErr := d.MakeSub(0o755, 0o755, "a", name)
		for what, err := range map[string]error{
			"Open":       openErr,
			"Make":       makeErr,
			"Create":     createErr,
			"OpenFile":   fileErr,
			"Lstat":      lookErr,
			"Readlink":   linkErr,
			"Sub":        subErr,
			"MakeSub":    makeSubErr,
			"Touch":      d.Touch(name, 0o600),
			"Symlink":    d.Symlink("x", name),
			"Remove":     d.Remove(name),
			"RemoveDir":  d.RemoveDir(name),
			"RemoveAll":  d.RemoveAll(name),
			"Rename":     d.Rename(name, d, "b"),
			"Rename to":  d.Rename("a", d, name),
			"Replace":    d.Replace(name, "b"),
			"Replace to": d.Replace("a", name),
		} {
			if !errors.Is(err, ErrName) {
				t.Errorf("%s of %q: %v, want ErrName", what, name, err)
			}
		}
	}
	if entries, err := d.Entries(); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v %v, want the old files", entries, err)
	}
}

func TestModesAreExactUnderAnyUmask(t *testing.T) {
	before := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(before) })
	base := t.TempDir()
	made, err := MakeAll(filepath.Join(base, "a/b/c"), 0o755, 0o777)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close() //nolint:errcheck // A handle on a directory.
	if err := made.Touch("file", 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := made.MakeSub(0o711, 0o1777|fs.ModeSticky, "d", "e"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		"a": fs.ModeDir | 0o755, "a/b": fs.ModeDir | 0o755, "a/b/c": fs.ModeDir | 0o777, "a/b/c/file": 0o666,
		"a/b/c/d": fs.ModeDir | 0o711, "a/b/c/d/e": fs.ModeDir | fs.ModeSticky | 0o777,
	} {
		if got := mode(t, filepath.Join(base, name)); got != want {
			t.Errorf("%s has mode %v, want %v", name, got, want)
		}
	}
	if unix.Umask(0o077) != 0o077 {
		t.Error("the umask of the process has changed")
	}
}

func TestLinksInThePath(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"real/inner", "on"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"absolute": filepath.Join(base, "real"), "relative": "real/inner/../inner", "on/up": "../real", "twice": "absolute/inner",
		"dangling": "real/new", "circle": "circle", "foreign": "real",
	} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Lchown(filepath.Join(base, "foreign"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"absolute/x": "real/x", "relative/x": "real/inner/x", "on/up/y": "real/y", "twice/y": "real/inner/y", "dangling/z": "real/new/z",
	} {
		d, err := MakeAll(filepath.Join(base, path), 0o755, 0o700)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		_ = d.Close()
		if got := mode(t, filepath.Join(base, want)); got != fs.ModeDir|0o700 {
			t.Errorf("%s is %v, want what %s was to be", want, got, path)
		}
	}
	if _, err := MakeAll(filepath.Join(base, "circle/x"), 0o755, 0o755); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a circle: %v", err)
	}
	for what, open := range map[string]func(string) (*Dir, error){
		"OpenDir": OpenDir, "MakeAll": func(path string) (*Dir, error) { return MakeAll(path, 0o755, 0o755) },
	} {
		_, err := open(filepath.Join(base, "foreign/inner"))
		if link := (*LinkError)(nil); !errors.As(err, &link) ||
			link.UID != 65534 || !strings.Contains(err.Error(), "foreign is a symbolic link of user 65534") {
			t.Errorf("%s over another user's link: %v", what, err)
		}
		if _, err := open("relative/path"); err == nil {
			t.Errorf("%s took a relative path", what)
		}
	}
}

// TestNothingIsFollowed checks that a link, a pipe or a file in place of a directory or file is not opened.
func TestNothingIsFollowed(t *testing.T) {
	base := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("v"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, base)
	if err := errors.Join(
		d.Symlink(filepath.Dir(victim), "dir"),
		d.Symlink(victim, "file"),
		unix.Mkfifo(filepath.Join(base, "pipe"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dir", "file", "pipe"} {
		if _, err := d.Open(name); !errors.Is(err, unix.ENOTDIR) || !Missing(err) {
			t.Errorf("Open of %s: %v", name, err)
		}
		if _, err := d.Make(name, 0o777); !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("Make of %s: %v", name, err)
		}
		if _, err := d.Create(name, 0o666); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Create of %s: %v", name, err)
		}
		if err := d.Touch(name, 0o666); err != nil {
			t.Errorf("Touch of %s: %v", name, err)
		}
	}
	if _, err := d.OpenFile("file", os.O_WRONLY|os.O_TRUNC, 0); !errors.Is(err, unix.ELOOP) {
		t.Errorf("OpenFile of a link: %v", err)
	}
	if file, err := d.OpenFile("pipe", os.O_RDONLY, 0); err != nil {
		t.Error(err)
	} else {
		_ = file.Close()
	}
	if err := errors.Join(
		d.RemoveAll("dir"),
		d.Remove("file"),
		d.RemoveAll("pipe"),
		d.Remove("gone"),
		d.RemoveDir("gone"),
		d.RemoveAll("gone"),
	); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "v" || mode(t, victim) != 0o600 {
		t.Errorf("the victim holds %q (%v)", text, err)
	}
}

// TestDirStaysOpenWhenRenamed checks that operations apply to the open directory, even if its path leads elsewhere by
// now.
func TestDirStaysOpenWhenRenamed(t *testing.T) {
	base, victim := t.TempDir(), t.TempDir()
	path := filepath.Join(base, "dir")
	if err := errors.Join(os.Mkdir(path, 0o755), os.WriteFile(filepath.Join(victim, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if err := errors.Join(os.Rename(path, path+".old"), os.Symlink(victim, path)); err != nil {
		t.Fatal(err)
	}
	file, err := d.Create("y", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(
		file.Close(),
		d.Remove("x"),
		d.RemoveAll("x"),
		d.Symlink("a", "b"),
		d.Replace("b", "c"),
		d.Rename("c", d, "d"),
		d.Sync(),
	); err != nil {
		t.Error(err)
	}
	entries, err := d.Entries()
	if err != nil || len(entries) != 2 || entries[0].Name() != "d" || entries[1].Name() != "y" {
		t.Errorf("in the directory are %v %v", entries, err)
	}
	if left, err := os.ReadDir(victim); err != nil || len(left) != 1 {
		t.Errorf("the other one has %v %v", left, err)
	}
}

func TestRenameReplacesNothing(t *testing.T) {
	base := t.TempDir()
	d := open(t, base)
	if err := errors.Join(d.Touch("a", 0o600), d.Touch("b", 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := d.Rename("a", d, "b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("in the place of another: %v", err)
	}
	if err := d.Rename("gone", d, "c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if target, err := d.Readlink("a"); err == nil {
		t.Errorf("a file leads to %q", target)
	}
}

// TestMakeAllWhileDirectoriesAreSwapped exchanges the created directory with a link to the victim and back, as the
// owner of a parent directory could. Nothing may be created or changed in the victim.
func TestMakeAllWhileDirectoriesAreSwapped(t *testing.T) {
	base, victim := t.TempDir(), t.TempDir()
	secret := filepath.Join(victim, "b")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The link belongs to the attacker, so it is not followed.
	link := filepath.Join(base, "link")
	if err := errors.Join(os.Symlink(victim, link), os.Lchown(link, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(base, "a")
	stop := make(chan struct{})
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
			if info, err := os.Lstat(path); err == nil && info.IsDir() {
				_ = os.Rename(path, path+".old")
				_ = os.RemoveAll(path + ".old")
			}
		}
	})
	for range 500 {
		if d, err := MakeAll(filepath.Join(path, "b", "c"), 0o755, 0o777); err == nil {
			_ = d.Close()
		}
	}
	close(stop)
	attacker.Wait()
	if got := mode(t, secret); got != 0o600 {
		t.Errorf("the victim has mode %v", got)
	}
	if entries, err := os.ReadDir(victim); err != nil || len(entries) != 1 {
		t.Errorf("at the victim's lie %v %v", entries, err)
	}
}

// TestNames checks that each name is returned once, and that a loop can end early.
func TestNames(t *testing.T) {
	path := t.TempDir()
	for i := range 2*NamesAtOnce + 1 {
		if err := os.WriteFile(filepath.Join(path, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // A handle on a directory.
	seen := map[string]int{}
	for name, err := range d.Names() {
		if seen[name]++; err != nil || seen[name] > 1 {
			t.Errorf("%q %d times, %v", name, seen[name], err)
		}
	}
	if len(seen) != 2*NamesAtOnce+1 {
		t.Errorf("%d names", len(seen))
	}
	visits := 0
	for _, err := range d.Names() {
		if visits++; err != nil || visits == 2 {
			break
		}
	}
	if visits != 2 {
		t.Errorf("%d visits", visits)
	}
	file, err := os.Open(filepath.Join(path, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It was only read.
	failures := 0
	for name, err := range Names(file) {
		if failures++; name != "" || err == nil {
			t.Errorf("a file has the name %q, %v", name, err)
		}
	}
	if failures != 1 {
		t.Errorf("%d errors", failures)
	}
}
