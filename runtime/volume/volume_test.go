package volume

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// newContext returns a pod with these volumes, each mounted by its one container at /mnt/NAME.
func newContext(t *testing.T, volumes ...v1.Volume) Context {
	t.Helper()
	dir := t.TempDir()
	app := v1.Container{Name: "app", Image: "app:1"}
	for _, vol := range volumes {
		app.VolumeMounts = append(app.VolumeMounts, v1.VolumeMount{Name: vol.Name, MountPath: "/mnt/" + vol.Name})
	}
	return Context{
		Pod: state.Layout{Root: filepath.Join(dir, "root"), LogRoot: filepath.Join(dir, "logs")}.Pod("u1"),
		Desired: &podspec.Desired{
			Pod: &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "web", Namespace: "default", UID: "u1",
					Labels:      map[string]string{"tier": "front", "app": "web"},
					Annotations: map[string]string{"note": "a \"quoted\"\nline"},
				},
				Spec: v1.PodSpec{Containers: []v1.Container{app}, Volumes: volumes},
			},
			Objects: podspec.Objects{
				ConfigMaps: map[string]*v1.ConfigMap{"conf": {
					Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"bin": {0, 255}},
				}},
				Secrets: map[string]*v1.Secret{"tls": {
					Data: map[string][]byte{"cert": []byte("CERT"), "key": []byte("KEY")},
				}},
			},
		},
		Allocatable: v1.ResourceList{
			v1.ResourceMemory: resource.MustParse("64Mi"), v1.ResourceCPU: resource.MustParse("2"),
		},
	}
}

func emptyDirVolume(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}

func configMapVolume(name string, items ...v1.KeyToPath) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
		LocalObjectReference: v1.LocalObjectReference{Name: "conf"}, Items: items, DefaultMode: new(int32(0o644)),
	}}}
}

func hostPathVolume(name, path string, kind v1.HostPathType) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

// dir returns the directory of the named volume.
func (c Context) dir(t *testing.T, name string) string {
	t.Helper()
	m, err := c.find(name)
	if err != nil {
		t.Fatal(err)
	}
	return ok(m.path())
}

func prepare(t *testing.T, c Context, name string) {
	t.Helper()
	if err := Prepare(t.Context(), c, name); err != nil {
		t.Fatal(err)
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
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != want {
		t.Errorf("mode of %s = %v, want %v", path, got, want)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%s holds %q (%v), want %q", path, text, err, want)
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

func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

// ok returns a path whose names are known to be valid.
func ok(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}

// content returns the wanted content of a volume of the pod.
func content(c Context, index int) (map[string]File, error) {
	m, err := c.find(c.Desired.Pod.Spec.Volumes[index].Name)
	if err != nil {
		return nil, err
	}
	return collector{m}.content()
}
