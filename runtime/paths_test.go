package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
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
	l := newLab(t, "i:1")
	d := podspectest.Desired(t, pathFromFile)
	x := &execution{e: l.engine, desired: d, plan: &plan.Plan{Pod: model.RefOf(d.Pod)}}
	x.yield.images = map[string]model.Image{"i:1": {ID: "sha256:1"}}
	ref, _ := podspec.FindContainer(d.Pod, "a")
	proven := func() string {
		t.Helper()
		config, err := x.containerConfig(ref, 0, []string{"10.0.0.2"}, mountsForProof)
		if err != nil {
			t.Fatal(err)
		}
		return config.GetMounts()[0].GetHostPath()
	}
	if got := proven(); got != "of-?" {
		t.Errorf("before the volume is there the subPath is %q", got)
	}
	if err := volume.Prepare(t.Context(), l.engine.volumeContext(d), "v"); err != nil {
		t.Fatal(err)
	}
	if got := proven(); got != "of-?" {
		t.Errorf("before the file is there the subPath is %q", got)
	}
	file := filepath.Join(ok(x.volumePath(&d.Pod.Spec.Volumes[0])), "app.env")
	if err := os.WriteFile(file, []byte("DIR='blue'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := proven(); got != "of-blue" {
		t.Errorf("with the file the subPath is %q", got)
	}
}
