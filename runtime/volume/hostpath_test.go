package volume

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// hostFiles creates one file of each type and returns their paths.
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
				wantMessage := "spec.volumes[0].hostPath: hostPath type check failed: " + path + " is not a "
				if err != nil && !strings.Contains(err.Error(), wantMessage) {
					t.Errorf("error %q is not the kubelet's message", err)
				}
				if _, prepared, err := onDisk(c, "host"); err != nil || prepared != want {
					t.Errorf("onDisk reports prepared: %v (%v), want %v", prepared, err, want)
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
		t.Errorf("error %v, want one about the missing directory", err)
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

// TestFaultsOfHostPaths checks that a wrong type is reported before the mount, unless the path is created by then.
func TestFaultsOfHostPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	symlink(t, dir+"/nowhere", dir+"/link")
	for name, c := range map[string]struct {
		volumes []v1.Volume
		fault   bool
	}{
		"no type":                {[]v1.Volume{hostPathVolume("v", dir+"/none", "")}, false},
		"a directory":            {[]v1.Volume{hostPathVolume("v", dir, v1.HostPathDirectory)}, false},
		"a file for a directory": {[]v1.Volume{hostPathVolume("v", dir+"/file", v1.HostPathDirectory)}, true},
		"a file for one to make": {[]v1.Volume{hostPathVolume("v", dir+"/file", v1.HostPathDirectoryOrCreate)}, true},
		"nothing":                {[]v1.Volume{hostPathVolume("v", dir+"/none", v1.HostPathSocket)}, true},
		"created paths":          {[]v1.Volume{hostPathVolume("v", dir+"/none", v1.HostPathFileOrCreate)}, false},
		"what another makes": {[]v1.Volume{
			hostPathVolume("v", dir+"/none", v1.HostPathDirectory),
			hostPathVolume("w", dir+"/none/x", v1.HostPathDirectoryOrCreate),
		}, false},
		"what another does not make": {[]v1.Volume{
			hostPathVolume("v", dir+"/none", v1.HostPathDirectory),
			hostPathVolume("w", dir+"/nonesuch", v1.HostPathDirectoryOrCreate),
		}, true},
		"another kind of volume":    {[]v1.Volume{emptyDirVolume("v")}, false},
		"one to make of the kernel": {[]v1.Volume{hostPathVolume("v", "/proc/none", v1.HostPathDirectoryOrCreate)}, true},
		"a dangling link to make":   {[]v1.Volume{hostPathVolume("v", dir+"/link", v1.HostPathDirectoryOrCreate)}, true},
	} {
		if err := faultOf(newContext(t, c.volumes...), "v"); (err != nil) != c.fault {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("files %v", got)
	}
}

// TestPathsThatARuntimeCannotMount checks paths without a type: the runtime follows links, and creates a missing path
// as a directory.
func TestPathsThatARuntimeCannotMount(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	symlink(t, "loop", dir+"/loop")
	symlink(t, dir, dir+"/link")
	symlink(t, dir+"/nowhere", dir+"/dangling")
	for path, want := range map[string]string{
		"/": "", dir: "", dir + "/file": "", dir + "/link": "", dir + "/link/new/dir": "", dir + "/new/dir/": "", "/proc/self": "",
		dir + "/file/x":                      "not a directory",
		dir + "/loop":                        "too many levels of symbolic links",
		dir + "/loop/x":                      "too many levels of symbolic links",
		dir + "/dangling":                    dir + "/dangling is a link to a path that does not exist",
		dir + "/dangling/x":                  dir + "/dangling is a link to a path that does not exist",
		dir + "/" + strings.Repeat("a", 300): "file name too long",
		"/proc/none":                         "/proc/none does not exist and cannot be created: /proc belongs to the kernel",
		"/sys/kernel/none/x":                 "/sys/kernel belongs to the kernel",
	} {
		vol := hostPathVolume("v", path, "")
		err := RuntimeFault(podspec.Volume{Volume: &vol})
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		vol = hostPathVolume("v", path, v1.HostPathSocket)
		if err := RuntimeFault(podspec.Volume{Volume: &vol}); err != nil {
			t.Errorf("%s with a type: %v", path, err)
		}
	}
	if got := names(t, dir); len(got) != 4 {
		t.Errorf("files %v", got)
	}
}

// TestFaultsOfContent checks that impossible content is reported before it is written. Missing objects are reported for
// their reference instead.
func TestFaultsOfContent(t *testing.T) {
	const pages = v1.StorageMediumHugePages
	of := func(name string, paths ...string) v1.Volume {
		source := &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}
		for _, path := range paths {
			source.Items = append(source.Items, v1.KeyToPath{Key: "k", Path: path})
		}
		return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: source}}
	}
	for want, volumes := range map[string][]v1.Volume{
		"": {of("cm"), of("cm", "a", "b/c", "b/d"), of("absent", "a", "a/b"), emptyDirVolume("v")},
		`MountVolume.SetUp failed for volume "v": spec.volumes[0]: path "a/b/c" is below "a", ` +
			"which is a file of the volume: not a directory": {
			of("cm", "a", "a/b/c"), of("cm", "a/b/c", "./a"),
		},
		"needs a container that requests huge pages": {{
			Name:         "v",
			VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: pages}},
		}},
		`unknown storage medium "Odd"`: {{
			Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: "Odd"}},
		}},
		"needs a container that requests hugepages-2Mi": {
			{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: pages + "-2Mi"}}},
		},
	} {
		for _, vol := range volumes {
			c := newContext(t, vol)
			c.Desired.Objects.ConfigMaps = map[string]*v1.ConfigMap{"cm": {Data: map[string]string{"k": "v"}}}
			if err := faultOf(c, "v"); (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
				t.Errorf("%+v: %v, want %q", vol, err, want)
			}
		}
	}
}

// TestUnmakeablePathsThatAppear checks that a directory that appears during the search is not taken for a dangling
// link.
func TestUnmakeablePathsThatAppear(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "appears")
	done := make(chan struct{})
	var maker sync.WaitGroup
	maker.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = os.Mkdir(dir, 0o700)
				_ = os.Remove(dir)
			}
		}
	})
	for range 20_000 {
		if err := cannotCreate(filepath.Join(dir, "below")); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	maker.Wait()
}
