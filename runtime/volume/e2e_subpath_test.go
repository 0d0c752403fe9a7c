//go:build e2e

package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

func subPath(t *testing.T, c Context, index int, sub string) string {
	t.Helper()
	target, err := PrepareSubPath(c, podspec.RegularContainers(c.Desired.Pod)[0], index, sub)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestSubPathIsBound(t *testing.T) {
	withUmask(t, 0o077)
	c := newMountedContext(t, emptyDirVolume("other"), emptyDirVolume("data"))
	prepare(t, c, "data")
	dir := c.dir(t, "data")
	write(t, filepath.Join(dir, "conf", "file"), "text")

	target := subPath(t, c, 1, "conf")
	if want := filepath.Join(c.Pod.Dir(), "volume-subpaths/data/app/1"); target != want {
		t.Errorf("bound to %s, want %s", target, want)
	}
	wantText(t, filepath.Join(target, "file"), "text")
	wantMode(t, filepath.Dir(target), os.ModeDir|0o750)

	file := subPath(t, c, 1, "conf/file")
	wantText(t, file, "text")
	wantNothingLeft(t, c)
}

func TestSubPathIsBoundOnce(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("data"))
	prepare(t, c, "data")
	write(t, filepath.Join(c.dir(t, "data"), "file"), "text")
	// The read-only flag marks the mount: recreating the mount would lose it.
	const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY
	if err := unix.Mount("", subPath(t, c, 0, "file"), "", flags, ""); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		target := subPath(t, c, 0, "file")
		wantText(t, target, "text")
		if n := countMounts(t, target); n != 1 {
			t.Errorf("%d mounts on the target, want one", n)
		}
		if m := mountOf(t, target); !strings.HasPrefix(m.Options, "ro") {
			t.Errorf("the mount was replaced: %s", m.Options)
		}
	}
}

func TestSubPathFollowsReplacedFiles(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("data"))
	prepare(t, c, "data")
	dir := c.dir(t, "data")
	write(t, filepath.Join(dir, "x"), "a file")
	target := subPath(t, c, 0, "x")
	wantText(t, target, "a file")

	remove(t, filepath.Join(dir, "x"))
	write(t, filepath.Join(dir, "x"), "another file")
	wantText(t, subPath(t, c, 0, "x"), "another file")

	remove(t, filepath.Join(dir, "x"))
	write(t, filepath.Join(dir, "x", "inside"), "a directory")
	wantText(t, filepath.Join(subPath(t, c, 0, "x"), "inside"), "a directory")
	if n := countMounts(t, target); n != 1 {
		t.Errorf("%d mounts on the target, want one", n)
	}
}

func TestSubPathOfAConfigMap(t *testing.T) {
	c := newMountedContext(t, configMapVolume("conf"))
	prepare(t, c, "conf")
	target := subPath(t, c, 0, "a")
	wantText(t, target, "1")
	c.Desired.Objects.ConfigMaps["conf"].Data["a"] = "2"
	if err := Prepare(t.Context(), c, "conf"); err != nil {
		t.Fatal(err)
	}
	wantText(t, target, "1") // A running container keeps its mount.
	wantText(t, subPath(t, c, 0, "a"), "2")
	wantNothingLeft(t, c)
}

func TestSubPathOfAHostPath(t *testing.T) {
	host := t.TempDir()
	write(t, filepath.Join(host, "dir", "file"), "the machine's")
	c := newMountedContext(t, hostPathVolume("host", host, v1.HostPathDirectory))
	target := subPath(t, c, 0, "dir")
	wantText(t, filepath.Join(target, "file"), "the machine's")
	made := subPath(t, c, 0, "new/deeper")
	wantMode(t, made, os.ModeDir|0o755)
	wantNothingLeft(t, c)
	wantText(t, filepath.Join(host, "dir", "file"), "the machine's")
	if _, err := os.Stat(filepath.Join(host, "new", "deeper")); err != nil {
		t.Error(err)
	}
}

func TestSubPathPropagation(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("data"))
	privateMount(t, filepath.Dir(filepath.Dir(filepath.Dir(c.Pod.Dir()))))
	prepare(t, c, "data")
	if shared, err := isShared(subPath(t, c, 0, "a")); err != nil || shared {
		t.Errorf("shared: %v (%v), want false", shared, err)
	}
	c.Desired.Pod.Spec.Containers[0].VolumeMounts[0].MountPropagation = new(v1.MountPropagationBidirectional)
	if shared, err := isShared(subPath(t, c, 0, "b")); err != nil || !shared {
		t.Errorf("shared: %v (%v), want true", shared, err)
	}
}

// TestSubPathsAreBoundInParallel binds the paths of several containers at once.
func TestSubPathsAreBoundInParallel(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("data"))
	prepare(t, c, "data")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ref := podspec.RegularContainers(c.Desired.Pod)[0]
			app := *ref.Container
			app.Name = fmt.Sprintf("app-%d", i)
			ref.Container = &app
			for range 3 {
				target, err := PrepareSubPath(c, ref, 0, "shared/by/all")
				if err != nil || target != ok(c.Pod.SubPath("data", app.Name, 0)) {
					t.Errorf("bound to %s (%v)", target, err)
				}
			}
		})
	}
	all.Wait()
	write(t, filepath.Join(c.dir(t, "data"), "shared/by/all/file"), "text")
	for i := range 8 {
		wantText(t, filepath.Join(ok(c.Pod.SubPath("data", fmt.Sprintf("app-%d", i), 0)), "file"), "text")
	}
	wantNothingLeft(t, c)
}

// TestBoundSubPathIsSafeWhileLinksAreSwapped runs the attack of CVE-2017-1002101 on the whole path. The bound file must
// always lie in the volume.
func TestBoundSubPathIsSafeWhileLinksAreSwapped(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("data"))
	prepare(t, c, "data")
	dir, outside := c.dir(t, "data"), t.TempDir()
	write(t, filepath.Join(outside, "secret"), "the machine's")
	write(t, filepath.Join(dir, "swap", "secret"), "the pod's")
	symlink(t, outside, filepath.Join(dir, "bait"))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = exchange(filepath.Join(dir, "swap"), filepath.Join(dir, "bait"))
		}
	}()
	bound, refused := 0, 0
	ref := podspec.RegularContainers(c.Desired.Pod)[0]
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		for _, sub := range []string{"swap", "swap/secret"} {
			target, err := PrepareSubPath(c, ref, 0, sub)
			if err != nil {
				refused++
				continue
			}
			bound++
			text, err := os.ReadFile(filepath.Join(target, strings.TrimPrefix("secret", filepath.Base(sub))))
			if err != nil || string(text) != "the pod's" {
				t.Fatalf("bound to %q (%v)", text, err)
			}
		}
	}
	stop.Store(true)
	<-done
	if bound == 0 || refused == 0 {
		t.Errorf("bound %d times, refused %d times: the links were never swapped during a bind", bound, refused)
	}
	wantNothingLeft(t, c)
	wantText(t, filepath.Join(outside, "secret"), "the machine's")
}

// TestRemovalSkipsMounts deletes a pod with other trees mounted in its directory, also from the same file
// system.
func TestRemovalSkipsMounts(t *testing.T) {
	host := t.TempDir()
	write(t, filepath.Join(host, "precious"), "the machine's")
	c := newMountedContext(t, hostPathVolume("host", host, v1.HostPathDirectory), emptyDirVolume("tmp"), memoryVolume("mem", ""))
	prepare(t, c, "tmp")
	prepare(t, c, "mem")
	subPath(t, c, 0, ".")
	inside := filepath.Join(c.dir(t, "tmp"), "mnt")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := unix.Mount(host, inside, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	wantNothingLeft(t, c)
	wantText(t, filepath.Join(host, "precious"), "the machine's")
}

// TestTreesAreNotFollowedIntoMounts checks the second line of defence: a mount that was not seen before the removal.
func TestTreesAreNotFollowedIntoMounts(t *testing.T) {
	host := t.TempDir()
	write(t, filepath.Join(host, "precious"), "the machine's")
	c := newMountedContext(t, emptyDirVolume("tmp"))
	prepare(t, c, "tmp")
	inside := filepath.Join(c.dir(t, "tmp"), "mnt")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(host, inside, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(c.Pod, c.Pod.Volumes()); !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EXDEV) {
		t.Errorf("error %v, want one about another mount", err)
	}
	wantText(t, filepath.Join(host, "precious"), "the machine's")
}

// TestMountInUseIsDetached deletes a pod while a process of the host uses one of its volumes.
func TestMountInUseIsDetached(t *testing.T) {
	c := newMountedContext(t, memoryVolume("mem", ""))
	prepare(t, c, "mem")
	f, err := os.Create(filepath.Join(c.dir(t, "mem"), "open"))
	if err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, c)
	if _, err := f.WriteString("still there for who has it open"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func countMounts(t *testing.T, target string) int {
	t.Helper()
	n := 0
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == target {
			n++
		}
	}
	return n
}
