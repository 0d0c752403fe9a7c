package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// restartedPod returns a pod of a Deployment that was restarted at a time, with one init container.
func restartedPod(t *testing.T, at string) *podspec.Desired {
	t.Helper()
	spec := "  initContainers: [{name: seed, image: i:1}]\n  containers: [{name: app, image: i:1}]\n"
	d := modeltest.Load(t,
		strings.Replace(modeltest.Pod(spec), "metadata: {name: web}",
			`metadata: {name: web, annotations: {kubectl.kubernetes.io/restartedAt: "`+at+`"}}`, 1))
	// A manifest names no controller: podctl sets it when it creates the pods of a workload.
	d.Pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: podspec.KindDeployment, Name: "web", UID: "u", Controller: new(true)},
	}
	return d
}

// TestRolloutRestart checks that a pod from before a restart of its workload is recreated once, with its init
// containers and without delay. A pod that cannot be recreated continues to run.
func TestRolloutRestart(t *testing.T) {
	w := modeltest.New(restartedPod(t, "2026-05-04T11:30:00Z")).Sandbox("s0", 0, model.SandboxReady).States("seed=Exited app=Running")
	w.Memory.Applied = restartedPod(t, "2026-05-04T10:30:00Z")
	want := []string{"kill pod true, create sandbox true, attempt 1: RolloutRestart", "start seed: SandboxReplaced, fresh"}
	if diff := cmp.Diff(want, choiceText(chosen(w, Options{}))); diff != "" {
		t.Error(diff)
	}
	in := inputOf(w)
	p := Make(in)
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == RunSandbox && s.Message != "its workload was restarted at 2026-05-04T11:30:00Z" {
			t.Errorf("unexpected reason for the new sandbox: %s", s.Message)
		}
	}
	if len(p.Record) != 0 {
		t.Errorf("the restart is recorded as an edit without a step: %v", p.Record)
	}
	w.Images["i:1"] = model.Image{}
	w.Desired.Pod.Spec.InitContainers[0].ImagePullPolicy = v1.PullNever
	in = inputOf(w)
	if p = Make(in); len(p.Steps) != 0 || len(p.Holds) == 0 || p.Complete {
		t.Errorf("steps without an image: %v", p.Steps)
	}
	w = modeltest.New(restartedPod(t, "2026-05-04T11:00:00Z")).Sandbox("s0", 0, model.SandboxReady).States("seed=Exited app=Running")
	in = inputOf(w)
	if p = Make(in); !p.Complete {
		t.Errorf("steps for a pod created after the restart time: %v", p.Steps)
	}
}

// TestRolloutRestartInTheFuture checks that a restart in the future does nothing until then, and that ChangesAt has its
// time.
func TestRolloutRestartInTheFuture(t *testing.T) {
	w := modeltest.New(restartedPod(t, "2026-05-04T12:30:00Z")).Sandbox("s0", 0, model.SandboxReady).States("seed=Exited app=Running")
	w.Memory.Applied = restartedPod(t, "2026-05-04T10:30:00Z")
	in := inputOf(w)
	p := Make(in)
	if !p.Complete || !p.ChangesAt.Equal(modeltest.Noon().Add(30*time.Minute)) {
		t.Errorf("steps %v, ChangesAt %s", p.Steps, p.ChangesAt)
	}
	if got, want := recorded(p), []string{"live: metadata.annotations.kubectl.kubernetes.io/restartedAt"}; !cmp.Equal(got, want) {
		t.Errorf("recorded: %v", got)
	}
}
