package volume

import (
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// TestTokenOwners checks the mode and the owner of a token: it belongs to the pod's group or to the user of all
// containers, and otherwise has the mode of the volume.
func TestTokenOwners(t *testing.T) {
	source := &v1.ServiceAccountTokenProjection{Path: "dir/token"}
	for name, test := range map[string]struct {
		user, group *int64
		want        File
	}{
		"the volume's mode": {nil, nil, File{Mode: 0o444, GID: -1}},
		"a group":           {nil, new(int64(2000)), File{Mode: 0o640, GID: 2000}},
		"a user":            {new(int64(1234)), nil, File{Mode: 0o600, GID: -1, UID: 1234}},
		"both":              {new(int64(1234)), new(int64(2000)), File{Mode: 0o640, GID: 2000, UID: 1234}},
		"podctl's user":     {new(int64(os.Geteuid())), nil, File{Mode: 0o600, GID: -1}},
	} {
		c := newContext(t, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o444)), Sources: []v1.VolumeProjection{{ServiceAccountToken: source}},
		}}})
		c.Desired.Pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: test.user, FSGroup: test.group}
		if _, err := content(c, 0); err == nil {
			t.Errorf("%s: no error without a token", name)
		}
		c.Desired.Objects.Secrets[podspec.TokenName(source)] = &v1.Secret{
			Data: map[string][]byte{podspec.TokenKey: []byte("x"), "expires": []byte("y")},
		}
		files, err := content(c, 0)
		got := files["dir/token"]
		if err != nil || len(files) != 1 || string(got.Data) != "x" || got.Mode != test.want.Mode ||
			got.GID != test.want.GID || got.UID != test.want.UID {
			t.Errorf("%s: %+v %v", name, files, err)
		}
		if os.Geteuid() == 0 {
			checkWritten(t, name, files, test.group)
		}
	}
}

// checkWritten writes files twice. The second time must find the content of the first.
func checkWritten(t *testing.T, name string, files map[string]File, group *int64) {
	t.Helper()
	w, _ := newWriter(t)
	w.group = group
	links := map[string]bool{}
	for range 2 {
		mustWrite(t, w, files)
		link, err := w.dir.Readlink(dataLink)
		if err != nil {
			t.Fatal(err)
		}
		links[link] = true
	}
	current, valid, err := w.current()
	if err != nil || !valid || len(links) != 1 || Digest(current) != Digest(files) {
		t.Errorf("%s: %+v %t %v, written %d times", name, current, valid, err, len(links))
	}
	for at, file := range files {
		other := file
		other.UID = 77
		if Digest(map[string]File{at: other}) == Digest(files) {
			t.Errorf("%s: another owner has the same digest", name)
		}
	}
}
