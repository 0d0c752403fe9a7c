//go:build e2e

package runtime

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestNothingIsStoppedForAMountThatIsNotShared: a runtime refuses to create a container for
// which mounts are to pass to and from a private one.
func TestNothingIsStoppedForAMountThatIsNotShared(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for flag, word := range map[uintptr]string{unix.MS_PRIVATE: "is not shared", unix.MS_SHARED: ""} {
		if err := unix.Mount("", dir, "", flag, ""); err != nil {
			t.Fatal(err)
		}
		f, edited := replacement(t)
		before := f.state()
		edited = strings.Replace(edited, "name: a, image: 'i:2'",
			"name: a, image: 'i:2', volumeMounts: [{name: host, mountPath: /h, mountPropagation: HostToContainer}]", 1)
		_, err := f.once(strings.TrimRight(edited, "\n") + "\n  volumes: [{name: host, hostPath: {path: " + dir + "}}]\n")
		if (err != nil) != (word != "") || (err != nil && !strings.Contains(err.Error(), word)) {
			t.Errorf("%v, want %q", err, word)
		}
		if diff := cmp.Diff(before, f.state()); (diff == "") != (word != "") {
			t.Errorf("(-before +after)\n%s", diff)
		}
	}
}
