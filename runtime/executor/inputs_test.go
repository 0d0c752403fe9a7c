package executor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
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

func loadPod(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}

// TestIDAllocationCanBeCanceled checks that the wait for the lock of user IDs can be interrupted.
func TestIDAllocationCanBeCanceled(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	lock, err := layout.Locks().IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock() //nolint:errcheck // the test is over
	d := loadPod(t, strings.Replace(pathFromFile, "spec:\n", "spec:\n  hostUsers: false\n", 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := &preparer{&subject{desired: d, plan: &plan.Plan{Pod: model.RefOf(d.Pod)}, pod: layout.Pod(d.Pod.UID)}}
	if _, err := x.runSandbox(ctx, &plan.Step{Kind: plan.RunSandbox}); !errors.Is(err, context.Canceled) {
		t.Errorf("runSandbox with a canceled context: %v", err)
	}
}

// TestServicesOfPods checks that a container gets podctl's own Services, or those of the cluster if the API server owns
// its pod. Such a container does not start before the cluster's Services were read.
func TestServicesOfPods(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	if err := layout.Prepare(); err != nil {
		t.Fatal(err)
	}
	write := func(file state.SharedFile, host string) {
		t.Helper()
		known := service.Known{Links: map[string]map[string]string{"default": {"WEB_SERVICE_HOST": host}}}
		text, err := known.Encode()
		if err = errors.Join(err, file.Write(text)); err != nil {
			t.Fatal(err)
		}
	}
	host := func(owner string) string {
		d := loadPod(t, pathFromFile)
		d.Owner = owner
		known, err := (&subject{Executor: &Executor{layout: layout}, desired: d}).services()
		if err != nil {
			return err.Error()
		}
		return known.Variables(d.Pod)["WEB_SERVICE_HOST"]
	}
	write(layout.ServiceNames(), "10.96.0.1")
	if got := host("") + " " + host(podspec.OwnerAPI); got != "10.96.0.1 "+errServicesUnread.Error() {
		t.Error(got)
	}
	write(state.ClusterServices(layout), "10.0.0.1")
	if got := host("") + " " + host(podspec.OwnerAPI); got != "10.96.0.1 10.0.0.1" {
		t.Error(got)
	}
}
