//go:build e2e

package runtime

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// TestNothingIsStoppedForAMountThatIsNotShared checks that a running container is not replaced by one with mount
// propagation on a private mount, because a runtime refuses to create it.
func TestNothingIsStoppedForAMountThatIsNotShared(t *testing.T) {
	dir := t.TempDir()
	mountSeparately(t, dir)
	for flag, word := range map[uintptr]string{unix.MS_PRIVATE: "is not shared", unix.MS_SHARED: ""} {
		if err := unix.Mount("", dir, "", flag, ""); err != nil {
			t.Fatal(err)
		}
		f, edited := replacement(t)
		before := f.state()
		edited = strings.Replace(edited, "name: a, image: 'i:2'",
			"name: a, image: 'i:2', volumeMounts: [{name: host, mountPath: /h, mountPropagation: HostToContainer}]", 1)
		p, err := f.once(strings.TrimRight(edited, "\n") + "\n  volumes: [{name: host, hostPath: {path: " + dir + "}}]\n")
		if err != nil || (len(p.Holds) > 0) != (word != "") || (word != "" && !strings.Contains(p.Holds[0].Message, word)) {
			t.Errorf("%v, held %+v, want %q", err, p.Holds, word)
		}
		if diff := cmp.Diff(before, f.state()); (diff == "") != (word != "") {
			t.Errorf("(-before +after)\n%s", diff)
		}
	}
}

// mountSeparately makes a directory a separate mount until the test is over. Where the machine shares all mounts, as
// systemd does, a bind would be a peer of its parent, so that a later mount and unmount would change both.
func mountSeparately(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// shareHostPaths makes the directories shared for which a pod uses mount propagation, as on the machine of the
// recording.
func shareHostPaths(t *testing.T, pod *v1.Pod) {
	t.Helper()
	for _, ref := range podspec.Containers(pod) {
		for i := range ref.VolumeMounts {
			m := &ref.VolumeMounts[i]
			vol := podspec.FindVolume(pod, m.Name)
			if m.MountPropagation == nil || vol == nil || vol.HostPath == nil {
				continue
			}
			if err := os.MkdirAll(vol.HostPath.Path, 0o755); err != nil {
				t.Fatal(err)
			}
			mountSeparately(t, vol.HostPath.Path)
			if err := unix.Mount("", vol.HostPath.Path, "", unix.MS_SHARED, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
}
