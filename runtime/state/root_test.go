package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state/statedir"
)

func TestRootIsOwnerOnlyUnderAnyUmask(t *testing.T) {
	for name, mask := range map[string]int{"open": 0, "usual": 0o022, "strict": 0o077} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			withUmask(t, mask)
			pod := l.Pod(testUID)
			if err := pod.Checkpoint().Write(&Checkpoint{}); err != nil {
				t.Fatal(err)
			}
			lock, err := pod.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pod.TerminationLogs("app").New(); err != nil {
				t.Fatal(err)
			}
			wantMode(t, l.Root, os.ModeDir|0o700)
			wantMode(t, l.pods(), os.ModeDir|0o750)
			wantMode(t, pod.Dir(), os.ModeDir|0o750)
			wantMode(t, pod.Checkpoint().Path(), 0o600)
			wantMode(t, ok(pod.TerminationLogs("app").Dir()), os.ModeDir|0o750)
			wantMode(t, l.Locks().dir(), os.ModeDir|0o700)
			if err := lock.Unlock(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRootThatOthersCanWriteToIsRefused(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"by all": 0o777, "by the group": 0o770, "by others only": 0o702} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			pod := l.Pod(testUID)
			if err := pod.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 7}}); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(l.Root, mode); err != nil {
				t.Fatal(err)
			}
			_, readErr := pod.Checkpoint().Read()
			_, listErr := uids(l)
			_, lockErr := pod.Lock(t.Context())
			for what, err := range map[string]error{
				"reading": readErr, "listing": listErr, "locking": lockErr,
				"writing": pod.Checkpoint().Write(&Checkpoint{}), "removing": pod.Checkpoint().Remove(),
			} {
				if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "chmod 700 "+l.Root) {
					t.Errorf("%s: error %v, want ErrUnsafe with what to do", what, err)
				}
			}
			if _, err := os.Stat(pod.Checkpoint().Path()); err != nil {
				t.Errorf("the checkpoint was touched: %v", err)
			}
		})
	}
}

func TestRootMayBeReadableByOthers(t *testing.T) {
	l := newLayout(t)
	if err := os.MkdirAll(l.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(l.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.Pod(testUID).Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatalf("a root created by a packager is refused: %v", err)
	}
	wantMode(t, l.Root, os.ModeDir|0o755)
	wantMode(t, l.Pod(testUID).Checkpoint().Path(), 0o600)
}

func TestRootMayBeAnOwnLink(t *testing.T) {
	l := newLayout(t)
	target := filepath.Join(t.TempDir(), "real")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(l.Root), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, l.Root); err != nil {
		t.Fatal(err)
	}
	if err := l.Pod(testUID).Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(target, "pods", testUID, "checkpoint.json")); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(target, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := l.Pod(testUID).Checkpoint().Write(&Checkpoint{}); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a link to a directory that all can write to: error %v, want ErrUnsafe", err)
	}
}

func TestRootThatIsAFileIsRefused(t *testing.T) {
	l := newLayout(t)
	write(t, l.Root, "not a directory")
	if err := l.Pod(testUID).Checkpoint().Write(&Checkpoint{}); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("error %v, want that it is not a directory", err)
	}
	text, err := os.ReadFile(l.Root)
	if err != nil || string(text) != "not a directory" {
		t.Errorf("the file was changed: %q, %v", text, err)
	}
}

func TestMakeDirStaysInThePod(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	for _, path := range []string{"/tmp/elsewhere", pod.Dir() + "-other", filepath.Dir(pod.Dir())} {
		if err := pod.MakeDir(path, 0o750); err == nil {
			t.Errorf("MakeDir(%s) succeeded, want an error", path)
		}
		wantGone(t, pod.Dir()+"-other")
	}
}

func TestMakeDirGivesExactModes(t *testing.T) {
	withUmask(t, 0o077)
	pod := newLayout(t).Pod(testUID)
	dir := ok(pod.VolumeDir(podspec.EmptyDir, "tmp"))
	if err := pod.MakeDir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	wantMode(t, dir, os.ModeDir|0o777)
	wantMode(t, filepath.Dir(dir), os.ModeDir|0o750)
	wantMode(t, pod.Volumes(), os.ModeDir|0o750)
	if err := pod.MakeDir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	wantMode(t, dir, os.ModeDir|0o777)
}

func TestMakeDirDoesNotReplaceAFile(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := pod.MakeDir(pod.Dir(), 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, pod.Volumes(), "a file")
	if err := pod.MakeDir(ok(pod.VolumeDir(podspec.EmptyDir, "tmp")), 0o777); err == nil {
		t.Error("MakeDir through a file succeeded, want an error")
	}
}

// TestLogsOfAnotherUserAreRefused checks that log directories of another user are refused, because the runtime writes
// logs as root and follows links.
func TestLogsOfAnotherUserAreRefused(t *testing.T) {
	logDir := func(p Pod, parts ...string) string {
		return filepath.Join(append([]string{p.layout.LogRoot}, parts...)...)
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, p Pod)
		want  string
	}{
		"the root is written by all": {func(t *testing.T, p Pod) {
			t.Helper()
			chmod(t, logDir(p), 0o777)
		}, "can be written by others"},
		"the root is written by a group": {func(t *testing.T, p Pod) {
			t.Helper()
			chmod(t, logDir(p), 0o775)
		}, "can be written by others"},
		"the pod's is written by all": {func(t *testing.T, p Pod) {
			t.Helper()
			chmod(t, ok(p.Logs("default", "web").Dir()), 0o757)
		}, "can be written by others"},
		"the container's is a link": {func(t *testing.T, p Pod) {
			t.Helper()
			relink(t, ok(p.Logs("default", "web").ContainerDir("app")))
		}, "is not a directory"},
		"the pod's is a link": {func(t *testing.T, p Pod) {
			t.Helper()
			relink(t, ok(p.Logs("default", "web").Dir()))
		}, "is not a directory"},
		"the container's belongs to another user": {func(t *testing.T, p Pod) {
			t.Helper()
			chown(t, ok(p.Logs("default", "web").ContainerDir("app")))
		}, "belongs to user 65534"},
		"the root belongs to another user": {func(t *testing.T, p Pod) { t.Helper(); chown(t, logDir(p)) }, "belongs to user 65534"},
		"the root is a link of one's own":  {func(t *testing.T, p Pod) { t.Helper(); relink(t, logDir(p)) }, ""},
		"a group writes above the root": {func(t *testing.T, p Pod) {
			t.Helper()
			shareWithGroup(t, filepath.Dir(p.layout.LogRoot))
		}, ""},
		"nothing is wrong": {func(*testing.T, Pod) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newLayout(t).Pod(testUID)
			if err := pod.Logs("default", "web").Make("app"); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, pod)
			err := pod.Logs("default", "web").Make("app")
			if (err == nil) != (c.want == "") ||
				(err != nil && (!errors.Is(err, statedir.ErrUnsafeLogs) || !strings.Contains(err.Error(), c.want))) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// shareWithGroup makes a directory writable for a group, like /var/log for syslog on Ubuntu.
func shareWithGroup(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another group")
	}
	if err := os.Chown(dir, 0, 65534); err != nil {
		t.Fatal(err)
	}
	chmod(t, dir, 0o775)
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
}

// relink moves a directory and creates a link in its place.
func relink(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path)); err != nil {
		t.Fatal(err)
	}
}

// TestAnotherRootIsCheckedAgain checks that a state directory that replaces a checked one is checked again.
func TestAnotherRootIsCheckedAgain(t *testing.T) {
	l := newLayout(t)
	pod := l.Pod(testUID)
	if err := pod.Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	above := filepath.Dir(l.Root)
	if err := errors.Join(os.Rename(above, above+".moved"), os.MkdirAll(l.Root, 0o700)); err != nil {
		t.Fatal(err)
	}
	chown(t, above)
	if _, err := pod.Checkpoint().Read(); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("below a directory of another user: error %v, want ErrUnsafe", err)
	}
}
