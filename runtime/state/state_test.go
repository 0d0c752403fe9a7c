package state

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// testUID is the uid of the pod in most tests.
const testUID = "0b4f6c1e-8d0a-5c39-9b1f-3f6f2f7a9c01"

func newLayout(t *testing.T) Layout {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // Let asOrdinaryUser in.
		t.Fatal(err)
	}
	return Layout{
		Root:             filepath.Join(dir, "lib", "podctl"),
		LogRoot:          filepath.Join(dir, "log", "pods"),
		ContainerLogRoot: filepath.Join(dir, "log", "containers"),
	}
}

// withUmask runs the test with another umask. The umask belongs to the process, so such tests do not run in parallel.
func withUmask(t *testing.T, mask int) {
	t.Helper()
	before := unix.Umask(mask)
	t.Cleanup(func() { unix.Umask(before) })
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != want {
		t.Errorf("mode of %s = %v, want %v", path, got, want)
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is still there", path)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, 0, len(entries))
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

// asOrdinaryUser calls do without root's access to files.
func asOrdinaryUser(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(65534); err != nil {
		t.Fatal(err)
	}
	do()
	if _, err := unix.SetfsuidRetUid(0); err != nil {
		t.Fatal(err)
	}
}

// ok returns a path whose names are known to be valid.
func ok(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}

// expired returns a context that has ended, with which only a free lock is taken.
func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// uids returns the pods with a checkpoint.
func uids(l Layout) (found []types.UID, err error) {
	pods, err := l.Pods().known()
	for _, pod := range pods {
		found = append(found, pod.uid)
	}
	return found, err
}
