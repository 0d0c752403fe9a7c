package safefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// podTree creates the log of one container, and a secret file outside.
func podTree(t *testing.T) (root, secret string) {
	t.Helper()
	base := t.TempDir()
	for _, dir := range []string{"/logs/pod/app", "/outside/app"} {
		if err := os.MkdirAll(base+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"/logs/pod/app/0.log": "mine", "/outside/app/0.log": "secret", "/outside/0.log": "secret"} {
		if err := os.WriteFile(base+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base + "/logs", base + "/outside"
}

func swap(t *testing.T, path, target string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
}

func text(path string, last int) (string, error) {
	f, _, err := OpenFileNoLinks(path, last)
	if err != nil {
		return "", err
	}
	all, err := io.ReadAll(f)
	return string(all), errors.Join(err, f.Close())
}

// TestNoLinkOfAPodIsFollowed checks links in place of a log, of a container's directory, and of a pod's directory.
func TestNoLinkOfAPodIsFollowed(t *testing.T) {
	for _, c := range []struct{ link, target string }{
		{"/pod/app/0.log", "/app/0.log"}, {"/pod/app", "/app"}, {"/pod", ""},
	} {
		root, outside := podTree(t)
		if got, err := text(root+"/pod/app/0.log", 3); err != nil || got != "mine" {
			t.Fatalf("%q %v", got, err)
		}
		swap(t, root+c.link, outside+c.target)
		if got, err := text(root+"/pod/app/0.log", 3); !errors.Is(err, ErrLink) || !strings.Contains(err.Error(), root) {
			t.Errorf("through the link %s: %q %v", c.link, got, err)
		}
	}
}

// TestLinksAbovePods checks that links are followed where only root could have created them.
func TestLinksAbovePods(t *testing.T) {
	root, _ := podTree(t)
	base := filepath.Dir(root)
	for _, name := range []string{"/safe", "/open", "/foreign"} {
		if err := os.Mkdir(base+name, 0o755); err != nil {
			t.Fatal(err)
		}
		for link, target := range map[string]string{"/absolute": root, "/relative": "../logs", "/circle": "circle"} {
			if err := os.Symlink(target, base+name+link); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(base+"/open", 0o1777); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"/safe/absolute", "/safe/relative"} {
		if got, err := text(base+link+"/pod/app/0.log", 3); err != nil || got != "mine" {
			t.Errorf("%s: %q %v", link, got, err)
		}
		if _, err := text(base+link+"/pod/app/0.log", 4); !errors.Is(err, ErrLink) {
			t.Errorf("%s, as an element of a pod: %v", link, err)
		}
	}
	if _, err := text(base+"/safe/circle/pod/app/0.log", 3); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a circle: %v", err)
	}
	refused := []string{"/open/absolute"}
	if os.Geteuid() == 0 {
		if err := os.Lchown(base+"/foreign/relative", 1234, 1234); err != nil {
			t.Fatal(err)
		}
		refused = append(refused, "/foreign/relative")
	}
	for _, link := range refused {
		if got, err := text(base+link+"/pod/app/0.log", 3); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s: %q %v", link, got, err)
		}
	}
}

// TestOnlyRegularFilesAreOpened checks that opening a pipe does not block, and that devices are not opened.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	root, _ := podTree(t)
	pipe := root + "/pod/app/pipe"
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/null", root + "/pod/app"} {
		if _, err := text(path, 1); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := text(root+"/pod/app/1.log", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := text(root+"/pod/app/0.log/x", 3); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file in the place of a directory: %v", err)
	}
	if _, err := text("0.log", 1); err == nil {
		t.Error("a relative path was opened")
	}
}

// TestSwappedDirectoriesAreNotFollowed checks that files outside are never read, however fast a directory is exchanged
// with a link.
func TestSwappedDirectoriesAreNotFollowed(t *testing.T) {
	root, outside := podTree(t)
	if err := os.Symlink(outside+"/app", root+"/pod/link"); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil && !stop.Load() {
			err = unix.Renameat2(unix.AT_FDCWD, root+"/pod/app", unix.AT_FDCWD, root+"/pod/link", unix.RENAME_EXCHANGE)
		}
		ended <- err
	}()
	seen := map[string]int{}
	for range 3000 {
		got, err := text(root+"/pod/app/0.log", 3)
		if err != nil && !errors.Is(err, ErrLink) {
			t.Fatal(err)
		}
		seen[got]++
	}
	stop.Store(true)
	if err := <-ended; err != nil || seen["secret"] > 0 {
		t.Errorf("%v (%v)", seen, err)
	}
}
