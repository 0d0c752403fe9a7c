//go:build e2e

package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// newMountedContext returns a pod whose mounts are always removed when the test ends. It needs root.
func newMountedContext(t *testing.T, volumes ...v1.Volume) Context {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts file systems: run it as root")
	}
	c := newContext(t, volumes...)
	t.Cleanup(func() {
		if err := unmountBelow(c.Pod.Dir()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func memoryVolume(name, sizeLimit string) v1.Volume {
	vol := emptyDirVolume(name)
	vol.EmptyDir.Medium = v1.StorageMediumMemory
	if sizeLimit != "" {
		vol.EmptyDir.SizeLimit = new(resource.MustParse(sizeLimit))
	}
	return vol
}

func secretVolume(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{
		SecretName: "tls", DefaultMode: new(int32(0o400)),
	}}}
}

// mountOf returns the visible mount on exactly this directory, or nil.
func mountOf(t *testing.T, dir string) *mountinfo.Info {
	t.Helper()
	mounts, err := mountinfo.GetMounts(mountedOn(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(mounts) == 0 {
		return nil
	}
	return mounts[len(mounts)-1]
}

func wantMounted(t *testing.T, dir, kind string) *mountinfo.Info {
	t.Helper()
	m := mountOf(t, dir)
	if m == nil || m.FSType != kind {
		t.Fatalf("mount on %s: %+v, want %s", dir, m, kind)
	}
	return m
}

func wantNothingLeft(t *testing.T, c Context) {
	t.Helper()
	if err := RemoveAll(c.Pod); err != nil {
		t.Fatal(err)
	}
	if left := names(t, c.Pod.Dir()); len(left) != 0 {
		t.Errorf("remaining files %v", left)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(c.Pod.Dir()))
	if err != nil || len(mounts) != 0 {
		t.Errorf("remaining mounts %v (%v)", mounts, err)
	}
}

func TestEmptyDirInMemory(t *testing.T) {
	withUmask(t, 0o077)
	c := newMountedContext(t, memoryVolume("tmp", "1Mi"))
	wantUnprepared(t, c, "tmp")
	prepare(t, c, "tmp")
	wantPrepared(t, c, "tmp")
	dir := c.dir(t, "tmp")
	m := wantMounted(t, dir, "tmpfs")
	if m.Source != "tmpfs" || !strings.Contains(m.VFSOptions, "size=1024k") {
		t.Errorf("mounted %s with %s, want tmpfs of 1 MiB", m.Source, m.VFSOptions)
	}
	wantMode(t, dir, os.ModeDir|os.ModeSticky|0o777)
	write(t, filepath.Join(dir, "data"), "kept")
	if err := os.WriteFile(filepath.Join(dir, "much"), make([]byte, 2<<20), 0o600); err == nil {
		t.Error("the volume accepted more data than its limit")
	}
	prepare(t, c, "tmp")
	wantText(t, filepath.Join(dir, "data"), "kept")
	wantNothingLeft(t, c)
}

func TestEmptyDirInMemoryForAGroup(t *testing.T) {
	c := newMountedContext(t, memoryVolume("tmp", ""))
	c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(2000))}
	prepare(t, c, "tmp")
	dir := c.dir(t, "tmp")
	wantMode(t, dir, os.ModeDir|os.ModeSticky|os.ModeSetgid|0o777)
	info, err := os.Stat(dir)
	if err != nil || groupOf(info) != 2000 {
		t.Errorf("the volume belongs to group %d (%v), want 2000", groupOf(info), err)
	}
	if m := wantMounted(t, dir, "tmpfs"); !strings.Contains(m.VFSOptions, "size=65536k") {
		t.Errorf("mounted with %s, want the node's 64 MiB", m.VFSOptions)
	}
}

// TestMemoryVolumesAfterAReboot removes the mounts, as a reboot does, and leaves the markers.
func TestMemoryVolumesAfterAReboot(t *testing.T) {
	c := newMountedContext(t, memoryVolume("tmp", ""), secretVolume("tls"))
	for _, name := range []string{"tmp", "tls"} {
		prepare(t, c, name)
	}
	if err := unmountBelow(c.Pod.Dir()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tmp", "tls"} {
		wantUnprepared(t, c, name)
		prepare(t, c, name)
		wantPrepared(t, c, name)
		wantMounted(t, c.dir(t, name), "tmpfs")
	}
}

// TestMediumChanges moves a volume repeatedly from disk to memory and back, while a running container keeps its mount.
func TestMediumChanges(t *testing.T) {
	for name, mode := range map[string]v1.MountPropagationMode{
		"private": v1.MountPropagationNone,
		"shared":  v1.MountPropagationBidirectional,
	} {
		t.Run(name, func(t *testing.T) {
			c := newMountedContext(t, memoryVolume("tmp", ""))
			c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(2000))}
			c.Desired.Pod.Spec.Containers[0].VolumeMounts[0].MountPropagation = &mode
			source, dir := c.Desired.Pod.Spec.Volumes[0].EmptyDir, c.dir(t, "tmp")
			prepare(t, c, "tmp")
			write(t, filepath.Join(dir, "data"), "in memory")
			container := boundElsewhere(t, dir)
			for range 2 {
				source.Medium = v1.StorageMediumDefault
				wantUnprepared(t, c, "tmp")
				prepare(t, c, "tmp")
				wantPrepared(t, c, "tmp")
				wantMode(t, dir, os.ModeDir|os.ModeSetgid|0o777)
				if m := mountOf(t, dir); m != nil && m.Root == "/" {
					t.Errorf("remaining mount %+v", m)
				}
				source.Medium = v1.StorageMediumMemory
				wantUnprepared(t, c, "tmp")
				prepare(t, c, "tmp")
				wantPrepared(t, c, "tmp")
				wantMounted(t, dir, "tmpfs")
			}
			wantText(t, filepath.Join(container, "data"), "in memory")
			wantGone(t, filepath.Join(dir, "data"))
			wantNothingLeft(t, c)
		})
	}
}

// boundElsewhere bind-mounts a directory, as for a container.
func boundElsewhere(t *testing.T, dir string) string {
	t.Helper()
	at := t.TempDir()
	if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}

func TestSecretsLieInMemoryWithTheirModes(t *testing.T) {
	for name, mask := range map[string]int{"open umask": 0, "strict umask": 0o077} {
		t.Run(name, func(t *testing.T) {
			c := newMountedContext(t, secretVolume("tls"))
			withUmask(t, mask)
			prepare(t, c, "tls")
			wantPrepared(t, c, "tls")
			dir := c.dir(t, "tls")
			wantMounted(t, dir, "tmpfs")
			wantText(t, filepath.Join(dir, "key"), "KEY")
			wantMode(t, filepath.Join(dir, "key"), 0o400)
			wantMode(t, ok(c.Pod.VolumeMarker("secret", "tls")), 0o644)
			if left := names(t, below(t, dir)); len(left) != 0 {
				t.Errorf("files on disk: %v", left)
			}
		})
	}
}

// below returns a directory without the mounts on it, through a bind mount of its parent. Moving the mount aside does
// not work for shared mounts, which systemd uses.
func below(t *testing.T, dir string) string {
	t.Helper()
	return filepath.Join(boundElsewhere(t, filepath.Dir(dir)), filepath.Base(dir))
}

func TestVolumesInMemory(t *testing.T) {
	fields := []v1.DownwardAPIVolumeFile{fieldItem("labels", "metadata.labels", nil)}
	c := newMountedContext(t,
		v1.Volume{Name: "down", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: fields}}},
		v1.Volume{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{DownwardAPI: &v1.DownwardAPIProjection{Items: fields}},
			{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "tls"}}},
		}}}},
		configMapVolume("conf"),
	)
	for _, name := range []string{"down", "all", "conf"} {
		prepare(t, c, name)
		wantPrepared(t, c, name)
	}
	wantMounted(t, c.dir(t, "down"), "tmpfs")
	wantMounted(t, c.dir(t, "all"), "tmpfs")
	if m := mountOf(t, c.dir(t, "conf")); m != nil {
		t.Errorf("unexpected mount on the configMap: %+v", m)
	}
	c.Desired.Pod.Labels = map[string]string{"tier": "back"}
	if err := Prepare(t.Context(), c, "all"); err != nil {
		t.Fatal(err)
	}
	wantPrepared(t, c, "all")
	wantText(t, filepath.Join(c.dir(t, "all"), "labels"), `tier="back"`)
	wantText(t, filepath.Join(c.dir(t, "all"), "key"), "KEY")
	wantNothingLeft(t, c)
}

func TestTooLargeSecretLeavesNothing(t *testing.T) {
	c := newMountedContext(t, secretVolume("tls"))
	c.Allocatable[v1.ResourceMemory] = resource.MustParse("16Ki")
	c.Desired.Objects.Secrets["tls"].Data["key"] = make([]byte, 1<<20)
	if err := Prepare(t.Context(), c, "tls"); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error %v, want ENOSPC", err)
	}
	wantGone(t, c.dir(t, "tls"))
	if m := mountOf(t, c.dir(t, "tls")); m != nil {
		t.Errorf("remaining mount %+v", m)
	}
}

// TestTooLargeUpdateKeepsTheOldContent fills a secret's memory. The old content stays readable, and no partial new
// content takes up memory.
func TestTooLargeUpdateKeepsTheOldContent(t *testing.T) {
	c := newMountedContext(t, secretVolume("tls"))
	c.Allocatable[v1.ResourceMemory] = resource.MustParse("128Ki")
	prepare(t, c, "tls")
	old := c.Desired.Objects.Secrets["tls"].Data["key"]
	c.Desired.Objects.Secrets["tls"].Data["key"] = make([]byte, 1<<20)
	for range 2 {
		if err := Prepare(t.Context(), c, "tls"); err == nil {
			t.Fatal("1 MiB was written to a volume of 128 KiB")
		}
	}
	wantText(t, filepath.Join(c.dir(t, "tls"), "key"), "KEY")
	if got := names(t, c.dir(t, "tls")); len(got) != 4 {
		t.Errorf("the volume has %v, want only the old content", got)
	}
	c.Desired.Objects.Secrets["tls"].Data["key"] = old
	wantPrepared(t, c, "tls")
}

func TestHugePages(t *testing.T) {
	vol := emptyDirVolume("huge")
	vol.EmptyDir.Medium = "HugePages-2Mi"
	c := newMountedContext(t, vol)
	pages := v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}
	c.Desired.Pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: pages, Requests: pages}
	if _, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB"); err != nil {
		if err := Prepare(t.Context(), c, "huge"); err == nil {
			t.Error("huge pages were mounted on a machine without huge pages")
		}
		return
	}
	for range 2 {
		prepare(t, c, "huge")
		wantPrepared(t, c, "huge")
	}
	m := wantMounted(t, c.dir(t, "huge"), "hugetlbfs")
	if m.Source != "nodev" || !strings.Contains(m.VFSOptions, "pagesize=2M") {
		t.Errorf("mounted %s with %s, want pages of 2 MiB", m.Source, m.VFSOptions)
	}
	wantNothingLeft(t, c)
}

func TestMountPropagation(t *testing.T) {
	c := newMountedContext(t, emptyDirVolume("disk"), memoryVolume("memory", ""), emptyDirVolume("private"))
	root := privateMount(t, filepath.Dir(filepath.Dir(filepath.Dir(c.Pod.Dir()))))
	mounts := c.Desired.Pod.Spec.Containers[0].VolumeMounts
	mounts[0].MountPropagation = new(v1.MountPropagationBidirectional)
	mounts[1].MountPropagation = new(v1.MountPropagationHostToContainer)
	mounts[2].MountPropagation = new(v1.MountPropagationNone)
	for range 2 {
		for _, name := range []string{"disk", "memory", "private"} {
			prepare(t, c, name)
			wantPrepared(t, c, name)
		}
	}
	for name, want := range map[string]bool{"disk": true, "memory": true, "private": false} {
		if shared, err := isShared(c.dir(t, name)); err != nil || shared != want {
			t.Errorf("%s in %s is shared: %v (%v), want %v", name, root, shared, err, want)
		}
	}
	if m := mountOf(t, c.dir(t, "private")); m != nil {
		t.Errorf("unexpected mount on a volume without mountPropagation: %+v", m)
	}
	write(t, filepath.Join(c.dir(t, "disk"), "data"), "x")
	if err := unix.Unmount(c.dir(t, "disk"), 0); err != nil {
		t.Fatal(err)
	}
	wantText(t, filepath.Join(c.dir(t, "disk"), "data"), "x")
	wantUnprepared(t, c, "disk")
	prepare(t, c, "disk")
	wantNothingLeft(t, c)
}

// TestPropagationNeedsASharedMount checks that a mount that a runtime would refuse is reported before.
func TestPropagationNeedsASharedMount(t *testing.T) {
	dir := privateMount(t, t.TempDir())
	inside, link := filepath.Join(dir, "a", "b"), filepath.Join(t.TempDir(), "link")
	write(t, filepath.Join(inside, "file"), "")
	symlink(t, inside, link)
	want := func(mount string, to, back bool) {
		t.Helper()
		for _, path := range []string{dir, inside, link, filepath.Join(inside, "absent")} {
			for mode, passes := range map[v1.MountPropagationMode]bool{
				v1.MountPropagationHostToContainer: to,
				v1.MountPropagationBidirectional:   back,
			} {
				err := CheckPropagation(path, mode)
				if (err == nil) != passes || (err != nil && !strings.Contains(err.Error(), "in the mount on "+dir+",")) {
					t.Errorf("%s, %s, %s: %v", mount, path, mode, err)
				}
			}
		}
	}
	want("private", false, false)
	slave := boundElsewhere(t, shared(t, dir))
	want("shared", true, true)
	if err := unix.Mount("", slave, "", unix.MS_SLAVE, ""); err != nil {
		t.Fatal(err)
	}
	to, back := CheckPropagation(slave, v1.MountPropagationHostToContainer), CheckPropagation(slave, v1.MountPropagationBidirectional)
	if to != nil || back == nil {
		t.Errorf("slave mount: to the container %v, back %v", to, back)
	}
}

// shared makes a mount shared.
func shared(t *testing.T, dir string) string {
	t.Helper()
	if err := makeShared(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// privateMount makes a directory a private mount, independent of the machine's root mount.
func privateMount(t *testing.T, dir string) string {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	return dir
}
