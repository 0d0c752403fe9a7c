package volume

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// hostFiles makes one file of each kind and returns their paths.
func hostFiles(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	symlink(t, dir, filepath.Join(dir, "link"))
	return map[string]string{
		"directory": dir, "file": filepath.Join(dir, "file"), "socket": filepath.Join(dir, "socket"), "char": "/dev/null",
		"link to a directory": filepath.Join(dir, "link"), "missing": filepath.Join(dir, "missing"),
	}
}

func TestHostPathTypes(t *testing.T) {
	files := hostFiles(t)
	fits := map[v1.HostPathType][]string{
		v1.HostPathUnset:             {"directory", "file", "socket", "char", "link to a directory", "missing"},
		v1.HostPathDirectory:         {"directory", "link to a directory"},
		v1.HostPathDirectoryOrCreate: {"directory", "link to a directory", "missing"},
		v1.HostPathFile:              {"file"},
		v1.HostPathFileOrCreate:      {"file", "missing"},
		v1.HostPathSocket:            {"socket"},
		v1.HostPathCharDev:           {"char"},
		v1.HostPathBlockDev:          nil,
	}
	for kind, fitting := range fits {
		for what, path := range files {
			t.Run(string(kind)+" "+what, func(t *testing.T) {
				want := false
				for _, fit := range fitting {
					want = want || fit == what
				}
				c := newContext(t, hostPathVolume("host", path, kind))
				err := Prepare(t.Context(), c, "host")
				if (err == nil) != want {
					t.Fatalf("Prepare: error %v, want one: %v", err, !want)
				}
				if err != nil && !strings.Contains(err.Error(), "spec.volumes[0].hostPath: hostPath type check failed: "+path+" is not a ") {
					t.Errorf("error %q is not in the kubelet's words", err)
				}
				if _, prepared, err := OnDisk(c, "host"); err != nil || prepared != want {
					t.Errorf("OnDisk says prepared: %v (%v), want %v", prepared, err, want)
				}
				if what == "missing" {
					_ = os.RemoveAll(path)
				}
			})
		}
	}
}

func TestHostPathIsCreatedWithTheKubeletsModes(t *testing.T) {
	withUmask(t, 0o077)
	base := t.TempDir()
	dir, file := filepath.Join(base, "a/b"), filepath.Join(base, "file")
	c := newContext(t, hostPathVolume("dir", dir, v1.HostPathDirectoryOrCreate), hostPathVolume("file", file, v1.HostPathFileOrCreate))
	wantUnprepared(t, c, "dir")
	prepare(t, c, "dir")
	prepare(t, c, "file")
	wantMode(t, dir, os.ModeDir|0o755)
	wantMode(t, filepath.Dir(dir), os.ModeDir|0o755)
	wantMode(t, file, 0o644)
	write(t, file, "kept")
	prepare(t, c, "file")
	wantText(t, file, "kept")
	if err := RemoveAll(c.Pod); err != nil {
		t.Fatal(err)
	}
	wantText(t, file, "kept")
	wantMode(t, dir, os.ModeDir|0o755)
}

func TestHostPathFileOrCreateMakesNoDirectories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing/file")
	c := newContext(t, hostPathVolume("file", path, v1.HostPathFileOrCreate))
	if err := Prepare(t.Context(), c, "file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the directory is missing", err)
	}
	wantGone(t, filepath.Dir(path))
}

func TestHostPathWithBackstepsIsRefused(t *testing.T) {
	for _, kind := range []v1.HostPathType{v1.HostPathUnset, v1.HostPathDirectory, v1.HostPathDirectoryOrCreate} {
		c := newContext(t, hostPathVolume("host", "/tmp/../etc", kind))
		if err := Prepare(t.Context(), c, "host"); err == nil || !strings.Contains(err.Error(), "must not contain '..'") {
			t.Errorf("type %q: error %v, want one about '..'", kind, err)
		}
		wantUnprepared(t, c, "host")
	}
}

func TestHostPathOfAnUnknownType(t *testing.T) {
	c := newContext(t, hostPathVolume("host", "/tmp", "Tape"))
	if err := Prepare(t.Context(), c, "host"); err == nil || !strings.Contains(err.Error(), `spec.volumes[0].hostPath.type: "Tape"`) {
		t.Errorf("error %v, want one that names the type", err)
	}
	c.Desired.Pod.Spec.Volumes[0].HostPath.Type = nil
	prepare(t, c, "host")
}

// TestFaultsOfHostPaths: what is not as its type says is known before it is mounted, unless it is
// made by then.
func TestFaultsOfHostPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	for name, c := range map[string]struct {
		volumes []v1.Volume
		fault   bool
	}{
		"no type":                    {[]v1.Volume{hostPathVolume("v", dir+"/none", "")}, false},
		"a directory":                {[]v1.Volume{hostPathVolume("v", dir, v1.HostPathDirectory)}, false},
		"a file for a directory":     {[]v1.Volume{hostPathVolume("v", dir+"/file", v1.HostPathDirectory)}, true},
		"a file for one to make":     {[]v1.Volume{hostPathVolume("v", dir+"/file", v1.HostPathDirectoryOrCreate)}, true},
		"nothing":                    {[]v1.Volume{hostPathVolume("v", dir+"/none", v1.HostPathSocket)}, true},
		"what is made":               {[]v1.Volume{hostPathVolume("v", dir+"/none", v1.HostPathFileOrCreate)}, false},
		"what another makes":         {[]v1.Volume{hostPathVolume("v", dir+"/none", v1.HostPathDirectory), hostPathVolume("w", dir+"/none/x", v1.HostPathDirectoryOrCreate)}, false},
		"what another does not make": {[]v1.Volume{hostPathVolume("v", dir+"/none", v1.HostPathDirectory), hostPathVolume("w", dir+"/nonesuch", v1.HostPathDirectoryOrCreate)}, true},
		"another kind of volume":     {[]v1.Volume{emptyDirVolume("v")}, false},
	} {
		if err := Fault(newContext(t, c.volumes...), "v"); (err != nil) != c.fault {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("now there is %v", got)
	}
}
