package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// withClaim adds a claim to the pod.
func withClaim(c Context) Context {
	c.Desired.Pod.Namespace = "default"
	c.Desired.Pod.Spec.Volumes = append(c.Desired.Pod.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}})
	return c
}

// TestClaimSurvivesAKillAtAnyPoint checks that a new directory is open to all users from the first moment, because a
// directory that exists is not changed again.
func TestClaimSurvivesAKillAtAnyPoint(t *testing.T) {
	withUmask(t, 0o077)
	for nth := 1; ; nth++ {
		root := filepath.Join(t.TempDir(), "root")
		c := withClaim(crashContext(root))
		output, err := os.Create(filepath.Join(t.TempDir(), "output"))
		if err != nil {
			t.Fatal(err)
		}
		traced, err := runtimetest.Trace(t.Context(), runtimetest.Program{
			Args:   []string{os.Args[0]},
			Env:    append(os.Environ(), roleEnv+"=claim", rootEnv+"="+root),
			Output: output,
		}, nth)
		if err = errors.Join(err, output.Close()); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(noteFile(c, "failure")); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the child process failed before the kill: %s (%v)", text, err)
		}
		prepare(t, c, "data")
		wantMode(t, c.dir(t, "data"), os.ModeDir|0o777)
		if !traced.Killed {
			if nth < 5 {
				t.Errorf("it changed only %q", traced.Changes)
			}
			return
		}
	}
}

func TestClaimKeepsItsMode(t *testing.T) {
	c := withClaim(newContext(t))
	prepare(t, c, "data")
	wantMode(t, c.dir(t, "data"), os.ModeDir|0o777)
	if err := os.Chmod(c.dir(t, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(t, c, "data")
	wantMode(t, c.dir(t, "data"), os.ModeDir|0o700)
}
