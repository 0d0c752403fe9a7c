package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/safefs"
)

// opened opens a subPath and returns the identity of the file.
func opened(t *testing.T, base, sub string) (os.FileInfo, error) {
	t.Helper()
	f, err := openSubPath(base, sub)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if closeErr := f.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	return info, nil
}

// subPathVolume returns a volume with files as from a container, and a secret of the machine outside.
func subPathVolume(t *testing.T) (base, outside string) {
	t.Helper()
	dir := t.TempDir()
	base, outside = filepath.Join(dir, "volume"), filepath.Join(dir, "outside")
	write(t, filepath.Join(outside, "secret"), "the machine's")
	write(t, filepath.Join(base, "dir", "file"), "the pod's")
	write(t, filepath.Join(base, "..2026", "file"), "hidden by dots")
	symlink(t, "dir", filepath.Join(base, "relative"))
	symlink(t, filepath.Join(base, "dir"), filepath.Join(base, "absolute-inside"))
	symlink(t, "relative", filepath.Join(base, "chain"))
	symlink(t, "../dir", filepath.Join(base, "dir", "around"))
	symlink(t, outside, filepath.Join(base, "absolute-outside"))
	symlink(t, "../outside", filepath.Join(base, "relative-outside"))
	symlink(t, "/", filepath.Join(base, "root"))
	symlink(t, "../outside/missing", filepath.Join(base, "dangling-outside"))
	symlink(t, "missing", filepath.Join(base, "dangling"))
	symlink(t, "loop", filepath.Join(base, "loop"))
	mkfifo(t, filepath.Join(base, "pipe"))
	return base, outside
}

func TestSubPathsInsideTheVolume(t *testing.T) {
	base, _ := subPathVolume(t)
	for sub, want := range map[string]string{
		"dir": "dir", "dir/file": "dir/file", "dir//./file": "dir/file", ".": ".", "dir/": "dir", "relative": "dir",
		"relative/file": "dir/file", "absolute-inside/file": "dir/file", "chain/around/file": "dir/file", "pipe": "pipe",
		"..2026/file": "..2026/file",
	} {
		t.Run(sub, func(t *testing.T) {
			got, err := opened(t, base, sub)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(base, want))
			if err != nil || !os.SameFile(got, info) {
				t.Errorf("opened another file than %s (%v)", want, err)
			}
		})
	}
}

func TestSubPathsOutOfTheVolumeAreRefused(t *testing.T) {
	base, outside := subPathVolume(t)
	before := names(t, outside)
	for _, sub := range []string{
		"absolute-outside", "absolute-outside/secret", "absolute-outside/new", "relative-outside/secret", "relative-outside/new/deeper",
		"root/etc/passwd", "root/proc/self/root", "dangling-outside", "dangling-outside/new", "dangling", "dangling/new", "loop", "loop/x",
		"dir/file/below-a-file",
	} {
		t.Run(sub, func(t *testing.T) {
			if info, err := opened(t, base, sub); err == nil {
				t.Errorf("opened %s, want an error", info.Name())
			}
		})
	}
	if _, err := opened(t, base, "absolute-outside/secret"); err == nil || !strings.Contains(err.Error(), "leads out of the volume") {
		t.Errorf("error %v, want one with the target", err)
	}
	if after := names(t, outside); len(after) != len(before) {
		t.Errorf("files outside of the volume: %v", after)
	}
	if root, err := os.Stat(filepath.Join(base, "dangling")); err == nil {
		t.Errorf("the target of a dangling link was created: %v", root)
	}
}

// TestSubPathOfAVolumeThatVanishes checks that a removal between two looks is reported as a missing file.
func TestSubPathOfAVolumeThatVanishes(t *testing.T) {
	for _, sub := range []string{".", "a", "a/b"} {
		if there, missing, err := resolve(filepath.Join(t.TempDir(), "gone"), sub); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q %q %v, want ErrNotExist", sub, there, missing, err)
		}
	}
}

func TestSubPathNamesThatAreRefusedAtOnce(t *testing.T) {
	c := newContext(t, emptyDirVolume("data"))
	ref := podspec.RegularContainers(c.Desired.Pod)[0]
	for sub, want := range map[string]string{
		"": "empty", "/etc": "absolute path", "..": "'..'", "a/../b": "'..'", "../x": "'..'", "a\x00b": "null character",
	} {
		_, err := PrepareSubPath(c, ref, 0, sub)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), `spec.containers[0].volumeMounts[0]: failed to prepare subPath`) {
			t.Errorf("subPath %q: error %v, want one about %s that names the field", sub, err, want)
		}
	}
	wantGone(t, c.Pod.Dir())
}

func TestSubPathOfAnUnsupportedVolume(t *testing.T) {
	c := newContext(t, v1.Volume{Name: "image", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{}}}, emptyDirVolume("data"))
	ref := podspec.RegularContainers(c.Desired.Pod)[0]
	if _, err := PrepareSubPath(c, ref, 0, "x"); err == nil || !strings.Contains(err.Error(), "spec.volumes[0]") {
		t.Errorf("an image volume: error %v, want one that names the volume's field", err)
	}
	if _, err := PrepareSubPath(c, ref, 1, "x"); err == nil {
		t.Error("a volume that is not prepared: no error")
	}
	ref.VolumeMounts[0].Name = "gone"
	if _, err := PrepareSubPath(c, ref, 0, "x"); err == nil || !strings.Contains(err.Error(), `no volume "gone"`) {
		t.Errorf("no such volume: error %v", err)
	}
}

func TestSubPathsAreCreatedWithTheVolumesMode(t *testing.T) {
	withUmask(t, 0o077)
	base := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	symlink(t, "real", filepath.Join(base, "link"))
	for _, dir := range []string{base, filepath.Join(base, "real")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(base, os.ModeSetgid|0o777); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, sub := range []string{"link/a/b", "c/d"} {
			if _, err := opened(t, base, sub); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Set-group-ID comes from the parent directory: a chmod could meet another directory.
	wantMode(t, filepath.Join(base, "real/a"), os.ModeDir|0o777)
	wantMode(t, filepath.Join(base, "real/a/b"), os.ModeDir|0o777)
	wantMode(t, filepath.Join(base, "c/d"), os.ModeDir|os.ModeSetgid|0o777)
	wantMode(t, filepath.Join(base, "real"), os.ModeDir|0o700)
}

func TestSubPathThroughALinkedVolume(t *testing.T) {
	base, _ := subPathVolume(t)
	link := filepath.Join(t.TempDir(), "link")
	symlink(t, base, link)
	if _, err := opened(t, link, "dir/file"); err != nil {
		t.Errorf("a hostPath that is a link: %v", err)
	}
	if _, err := opened(t, filepath.Join(base, "dir/file"), "x"); err == nil {
		t.Error("a subPath of a file: no error")
	}
}

// TestSubPathIsSafeWhileLinksAreSwapped exchanges a directory of the volume with a link out of it, as a container
// could, while the path is opened. The opened file must never lie outside.
func TestSubPathIsSafeWhileLinksAreSwapped(t *testing.T) {
	base, outside := subPathVolume(t)
	secret, err := os.Stat(filepath.Join(outside, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "swap", "secret"), "the pod's")
	symlink(t, "../outside", filepath.Join(base, "bait"))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = exchange(filepath.Join(base, "swap"), filepath.Join(base, "bait"))
		}
	}()
	inside, refused := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		for _, sub := range []string{"swap/secret", "swap/new/dir"} {
			info, err := opened(t, base, sub)
			switch {
			case err != nil:
				refused++
			case os.SameFile(info, secret):
				t.Fatal("a file outside of the volume was opened")
			default:
				inside++
			}
		}
	}
	stop.Store(true)
	<-done
	if left := names(t, outside); len(left) != 1 {
		t.Errorf("files were created outside of the volume: %v", left)
	}
	if inside == 0 || refused == 0 {
		t.Errorf("opened %d times, refused %d times: the links were never swapped during an open", inside, refused)
	}
}

// TestHandlesCannotBeRead opens a pipe without a writer, which must not block, and a link that replaced a file.
func TestHandlesCannotBeRead(t *testing.T) {
	base, _ := subPathVolume(t)
	root, err := safefs.OpenDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // A handle on a directory.
	f, err := openHandle(root, "pipe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); err == nil {
		t.Error("the handle can be read, so it was not opened with O_PATH")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, link := range []string{"absolute-outside", "relative", "loop"} {
		if f, err := openHandle(root, link); err == nil {
			t.Errorf("%s was opened as %s", link, f.Name())
		}
	}
}

// TestCheckedSubPaths checks that CheckSubPath agrees with the preparation and creates nothing.
func TestCheckedSubPaths(t *testing.T) {
	base, outside := subPathVolume(t)
	c := newContext(t, hostPathVolume("data", base, ""))
	ref := podspec.RegularContainers(c.Desired.Pod)[0]
	before := len(names(t, base)) + len(names(t, outside))
	for _, sub := range []string{
		"dir", "dir/file", ".", "relative", "chain/around/file", "pipe", "new", "dir/new/deeper", "relative/new", "absolute-inside/file",
		"absolute-outside", "absolute-outside/new", "relative-outside/secret", "root/etc/passwd", "dangling-outside",
		"dangling/new", "loop", "loop/x",
		"dir/file/below-a-file", "relative/file/below", "pipe/below", "..", "/etc", "",
	} {
		path, err := CheckSubPath(c, ref, 0, sub)
		if got := len(names(t, base)) + len(names(t, outside)); got != before {
			t.Fatalf("%s: the check created a file", sub)
		}
		var made string
		f, madeErr := openSubPath(base, sub)
		if refused := checkSubPath(sub); refused != nil {
			madeErr = refused
		}
		if f != nil {
			made = f.Name()
			if closeErr := f.Close(); closeErr != nil {
				t.Fatal(closeErr)
			}
		}
		if (err == nil) != (madeErr == nil) || (err == nil) != filepath.IsAbs(path) {
			t.Errorf("%q: checked %q %v, created %q %v", sub, path, err, made, madeErr)
		}
		before = len(names(t, base)) + len(names(t, outside))
	}
	if path, err := CheckSubPath(newContext(t, emptyDirVolume("data")), ref, 0, "a"); err != nil || path == "" {
		t.Errorf("subPath of a missing volume: %q, %v", path, err)
	}
}

// TestSubPathCreatedConcurrently starts two containers of a pod that create the same directory of a volume at the same
// time.
func TestSubPathCreatedConcurrently(t *testing.T) {
	root := t.TempDir()
	for i := range 500 {
		sub := filepath.Join(strconv.Itoa(i), "s")
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				f, err := openSubPath(root, sub)
				if err != nil {
					t.Errorf("%s: %v", sub, err)
					return
				}
				if err = f.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
}
