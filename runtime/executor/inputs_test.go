package executor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

const pathFromFile = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: a
    image: i:1
    env:
    - {name: DIR, valueFrom: {fileKeyRef: {volumeName: v, path: app.env, key: DIR}}}
    volumeMounts: [{name: v, mountPath: /v, subPathExpr: of-$(DIR)}]
  volumes: [{name: v, emptyDir: {}}]
`

// TestSubPathFromAFile: a variable that an init container's file supplies may be part of a
// subPath, and a proof that comes before the volume is there does without it.
func TestSubPathFromAFile(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	d := loadPod(t, pathFromFile)
	x := &inputs{
		subject: &subject{desired: d, plan: &plan.Plan{Pod: model.RefOf(d.Pod)}, pod: layout.Pod(d.Pod.UID), node: func() criconfig.Node { return criconfig.Node{} }},
		outputs: newOutputs(&plan.Plan{}, &model.Observed{Images: map[string]model.Image{"i:1": {ID: "sha256:1"}}}),
	}
	ref, _ := podspec.FindContainer(d.Pod, "a")
	proven := func() string {
		t.Helper()
		config, err := x.builder(x.proven()).Container(ref, 0, []string{"10.0.0.2"})
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(config.GetMounts()[0].GetHostPath())
	}
	if got := proven(); got != "of-?" {
		t.Errorf("before the volume is there the subPath is %q", got)
	}
	if err := volume.Prepare(t.Context(), x.volumes(d), "v"); err != nil {
		t.Fatal(err)
	}
	if got := proven(); got != "of-?" {
		t.Errorf("before the file is there the subPath is %q", got)
	}
	file := filepath.Join(volumePath(t, x), "app.env")
	if err := os.WriteFile(file, []byte("DIR='blue'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := proven(); got != "of-blue" {
		t.Errorf("with the file the subPath is %q", got)
	}
}

func volumePath(t *testing.T, x *inputs) string {
	t.Helper()
	path, err := x.VolumePath(&x.desired.Pod.Spec.Volumes[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func loadPod(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}

// TestIDsAreNotWaitedForForever: who waits for the lock of user ids can be interrupted.
func TestIDsAreNotWaitedForForever(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	lock, err := layout.Locks().IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock() //nolint:errcheck // the test is over
	d := loadPod(t, strings.Replace(pathFromFile, "spec:\n", "spec:\n  hostUsers: false\n", 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := &preparer{subject: &subject{desired: d, plan: &plan.Plan{Pod: model.RefOf(d.Pod)}, pod: layout.Pod(d.Pod.UID)}}
	if _, err := x.runSandbox(ctx, &plan.Step{Kind: plan.RunSandbox}); !errors.Is(err, context.Canceled) {
		t.Errorf("the sandbox ended with %v", err)
	}
}
