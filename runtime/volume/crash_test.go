package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// With these variables the test binary acts as a podctl that will be killed. They set the repeated action and its state
// directory.
const (
	roleEnv = "PODCTL_TEST_ROLE"
	rootEnv = "PODCTL_TEST_ROOT"
)

func TestMain(m *testing.M) {
	runtimetest.BeTraced()
	c := crashContext(os.Getenv(rootEnv))
	if os.Getenv(roleEnv) != "" {
		_ = os.WriteFile(noteFile(c, "begun"), nil, 0o600)
	}
	switch os.Getenv(roleEnv) {
	case "update":
		for i := 0; ; i++ {
			c.Desired.Objects.ConfigMaps["conf"] = crashContent(i)
			noteFailure(c, Prepare(context.Background(), c, "conf"))
		}
	case "remove":
		for {
			for _, vol := range podspec.UsedVolumes(c.Desired.Pod) {
				noteFailure(c, Prepare(context.Background(), c, vol.Name))
			}
			noteFailure(c, bindAll(c))
			noteFailure(c, RemoveAll(c.Pod))
		}
	case "claim":
		noteFailure(c, Prepare(context.Background(), withClaim(c), "data"))
	case "hostpath":
		noteFailure(c, Prepare(context.Background(), withHostPath(c), "host"))
	default:
		runtimetest.Main(m)
	}
}

// crashContext returns a pod with a content volume and an emptyDir.
func crashContext(root string) Context {
	return Context{
		Pod: state.Layout{Root: root}.Pod("u1"),
		Desired: &podspec.Desired{
			Pod: &v1.Pod{Spec: v1.PodSpec{
				Volumes: []v1.Volume{configMapVolume("conf"), emptyDirVolume("tmp")},
				Containers: []v1.Container{{Name: "app", VolumeMounts: []v1.VolumeMount{
					{Name: "conf", MountPath: "/conf"}, {Name: "tmp", MountPath: "/conf/nested"},
				}}},
			}},
			Objects: podspec.Objects{ConfigMaps: map[string]*v1.ConfigMap{"conf": crashContent(0)}},
		},
	}
}

// crashContent returns files that appear, change and disappear with i.
func crashContent(i int) *v1.ConfigMap {
	data := map[string]string{"always": fmt.Sprint(i)}
	for n := range i % 5 {
		data[fmt.Sprintf("file-%d", n)] = strings.Repeat("x", i%1000)
	}
	return &v1.ConfigMap{Data: data}
}

// noteFailure records an error for the parent process. Only a kill may cause failures.
func noteFailure(c Context, err error) {
	if err != nil {
		_ = os.WriteFile(noteFile(c, "failure"), []byte(err.Error()), 0o600)
	}
}

// noteFile is where the killed process leaves messages.
func noteFile(c Context, what string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(c.Pod.Dir()))), what)
}

// killAtRandom starts the role and kills it in the middle of its work.
func killAtRandom(t *testing.T, role, root string) {
	t.Helper()
	c := crashContext(root)
	if err := os.RemoveAll(noteFile(c, "begun")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, rootEnv+"="+root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(noteFile(c, "begun")); err == nil {
			break
		}
	}
	time.Sleep(time.Duration(rand.IntN(20000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if text, err := os.ReadFile(noteFile(c, "failure")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the child process failed before the kill: %s (%v)", text, err)
	}
}

func TestRemovalIsFinishedAfterAKillAtAnyPoint(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	c := crashContext(root)
	t.Cleanup(func() {
		if err := unmountBelow(c.Pod.Dir()); err != nil {
			t.Error(err)
		}
	})
	interrupted := 0
	for range 15 {
		killAtRandom(t, "remove", root)
		if entries, err := os.ReadDir(c.Pod.Dir()); err == nil && len(entries) > 0 {
			interrupted++
		}
		for _, name := range []string{"conf", "tmp"} {
			prepare(t, c, name)
			wantPrepared(t, c, name)
		}
		if err := RemoveAll(c.Pod); err != nil {
			t.Fatal(err)
		}
		if left := names(t, c.Pod.Dir()); len(left) != 0 {
			t.Fatalf("remaining files %v", left)
		}
	}
	if interrupted == 0 {
		t.Error("no kill hit a pod with files")
	}
}

func TestVolumeSurvivesAKillAtAnyPoint(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	c := crashContext(root)
	begun := 0
	for i := range 15 {
		killAtRandom(t, "update", root)
		if _, err := os.Lstat(filepath.Join(c.dir(t, "conf"), dataLink)); err == nil {
			begun++
			wantConsistent(t, c)
		}
		c.Desired.Objects.ConfigMaps["conf"] = crashContent(i)
		prepare(t, c, "conf")
		wantPrepared(t, c, "conf")
		want := len(crashContent(i).Data) + 3 // ..data, its target, and the mount point.
		if got := names(t, c.dir(t, "conf")); len(got) != want {
			t.Errorf("the volume has %v, want %d entries", got, want)
		}
	}
	if begun == 0 {
		t.Error("no volume was ever written before the kill")
	}
}

// wantConsistent checks that a container sees the files of one version after a kill.
func wantConsistent(t *testing.T, c Context) {
	t.Helper()
	data := filepath.Join(c.dir(t, "conf"), dataLink)
	text, err := os.ReadFile(filepath.Join(data, "always"))
	if err != nil {
		t.Fatal(err)
	}
	var i int
	if _, err := fmt.Sscan(string(text), &i); err != nil {
		t.Fatalf("a half-written file: %q", text)
	}
	for name, want := range crashContent(i).Data {
		wantText(t, filepath.Join(data, name), want)
	}
	if got := names(t, data); len(got) != len(crashContent(i).Data) {
		t.Errorf("version %d has %v", i, got)
	}
}
