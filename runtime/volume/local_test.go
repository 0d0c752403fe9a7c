package volume

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// withLocal returns a pod of the API server whose claim "data" is bound to a local volume.
func withLocal(t *testing.T, path string) Context {
	t.Helper()
	c := withClaim(newContext(t))
	c.Desired.Owner = podspec.OwnerAPI
	c.Desired.Pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	c.Desired.Objects.Volumes = map[string]*podspec.HostVolume{"data": {Name: "pv", Path: path, Local: true}}
	return c
}

// TestLocalVolumes checks that a local volume must be a directory, with the messages of a kubelet.
func TestLocalVolumes(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(root, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing connects
	const setUp = `MountVolume.SetUp failed for volume "pv" : `
	missing := filepath.Join(root, "missing")
	for path, want := range map[string]string{
		root:                          "",
		missing:                       `MountVolume.NewMounter initialization failed for volume "pv" : path "` + missing + `" does not exist`,
		filepath.Join(root, "file"):   setUp + "only directory and block device are supported",
		filepath.Join(root, "socket"): setUp + "only directory and block device are supported",
		"/dev/null":                   setUp + `podctl cannot mount the device "/dev/null" of a local volume, only a directory`,
		root + "/../x":                setUp,
		"relative":                    setUp,
	} {
		c := withLocal(t, path)
		states, got := States(c), ""
		if err := Prepare(t.Context(), c, "data"); err != nil {
			got = model.KubeletText(err)
		}
		if fault := states[0].Fault; states[0].Prepared != (want == "") || fault != nil && model.KubeletText(fault) != got ||
			(fault == nil) != (want == "") {
			t.Errorf("%s: %+v", path, states[0])
		}
		if got != want && (want != setUp || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestGroupOfLocalVolumes checks that a local volume and its files get the pod's group, but not what its links lead to,
// and nothing if the pod may only read.
func TestGroupOfLocalVolumes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to a group")
	}
	for _, readOnly := range []bool{true, false} {
		root, other := t.TempDir(), t.TempDir()
		file := filepath.Join(root, "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, filepath.Join(root, "link")); err != nil {
			t.Fatal(err)
		}
		c := withLocal(t, root)
		c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(2000))}
		c.Desired.Pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = readOnly
		if before := States(c); before[0].Prepared != readOnly || before[0].Fault != nil {
			t.Errorf("%+v", before[0])
		}
		prepare(t, c, "data")
		for path, want := range map[string]bool{root: !readOnly, file: !readOnly, other: false} {
			info, err := os.Stat(path)
			if err != nil || (groupOf(info) == 2000) != want {
				t.Errorf("read-only %t: %s has the group %d, %v", readOnly, path, groupOf(info), err)
			}
		}
		if after := States(c); !after[0].Prepared {
			t.Errorf("%+v", after[0])
		}
	}
}

// TestUnboundClaims checks that an unbound claim of the API server is not a directory of podctl's own with that name, and
// that the deletion of the pod does not remove that one.
func TestUnboundClaims(t *testing.T) {
	own := withClaim(newContext(t))
	prepare(t, own, "data")
	c := own
	d := *own.Desired
	d.Owner = podspec.OwnerAPI
	c.Desired = &d
	if path, err := c.Path(podspec.Volumes(&d)[0]); path != "" || err != nil {
		t.Errorf("%q %v", path, err)
	}
	if err := Prepare(t.Context(), c, "data"); err == nil {
		t.Error("it was prepared")
	}
	refused, err := RemoveClaims(t.Context(), c, func(string) bool { return false })
	dir, openErr := c.Pod.Claims().Open(state.Claim{Namespace: "default", Name: "data"})
	if refused != nil || err != nil || openErr != nil {
		t.Fatalf("%v %v %v", refused, err, openErr)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}
