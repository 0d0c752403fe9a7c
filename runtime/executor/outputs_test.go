package executor

import (
	"slices"
	"sync"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestOutputsStartWithKeptSandbox checks that a plan that keeps its sandbox starts with the addresses of that sandbox.
func TestOutputsStartWithKeptSandbox(t *testing.T) {
	observed := &model.Observed{
		Sandboxes: []model.Sandbox{
			{ID: "old", IPs: []string{"10.0.0.1"}},
			{ID: "new", IPs: []string{"10.0.0.2", "fd00::2"}},
		},
	}
	o := newOutputs(&plan.Plan{SandboxID: "new"}, observed)
	if got := o.sandbox(); got.ID != "new" || len(got.IPs) != 2 || got.IPs[0] != "10.0.0.2" {
		t.Errorf("sandbox %+v", got)
	}
	if o = newOutputs(&plan.Plan{}, observed); len(o.sandbox().IPs) > 0 || o.sandbox().ID != "" {
		t.Errorf("sandbox before its creation: %+v", o.sandbox())
	}
}

// TestSandboxMessageIsTheSame checks that concurrent starts get the same message.
func TestSandboxMessageIsTheSame(t *testing.T) {
	o := newOutputs(&plan.Plan{SandboxID: "s"}, &model.Observed{})
	got := make([]*runtimeapi.PodSandboxConfig, 8)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			sandbox := o.useConfig(&runtimeapi.PodSandboxConfig{})
			if sandbox.ID != "s" {
				t.Errorf("sandbox %q", sandbox.ID)
			}
			got[i] = sandbox.config
		})
	}
	group.Wait()
	if slices.ContainsFunc(got, func(c *runtimeapi.PodSandboxConfig) bool { return c == nil || c != got[0] }) {
		t.Error("the starts got different messages")
	}
	own := &runtimeapi.PodSandboxConfig{Hostname: "own"}
	o.setSandbox(sandboxOutput{Sandbox: model.Sandbox{ID: "t"}, config: own})
	if sandbox := o.useConfig(&runtimeapi.PodSandboxConfig{}); sandbox.config != own {
		t.Errorf("after a sandbox was created: %+v", sandbox)
	}
}

// TestReplacementsAreUsedOnce checks that a created replacement is either started or removed, not both.
func TestReplacementsAreUsedOnce(t *testing.T) {
	o := newOutputs(&plan.Plan{}, &model.Observed{})
	o.setCreated("start-a", creation{id: "1"})
	if made, ok := o.takeCreated("start-b"); ok {
		t.Errorf("another step got the creation %+v", made)
	}
	if made, ok := o.takeCreated("start-a"); !ok || made.id != "1" {
		t.Errorf("the step got the creation %+v, %t", made, ok)
	}
	if made, ok := o.takeCreated("start-a"); ok {
		t.Errorf("the step got the creation twice: %+v", made)
	}
}

// TestStartedContainers checks that a container with a failed postStart hook does not count as started, and that
// callers get a copy of the list.
func TestStartedContainers(t *testing.T) {
	o := newOutputs(&plan.Plan{}, &model.Observed{Images: map[string]model.Image{}})
	o.setStarted("a", "1")
	o.setStarted("b", "2")
	o.dropStarted("b")
	all := o.allStarted()
	if len(all) != 1 || all["a"] != "1" || o.startedID("b") != "" {
		t.Errorf("started containers %v", all)
	}
	all["c"] = "3"
	if o.startedID("c") != "" {
		t.Error("allStarted returned the map itself, not a copy")
	}
	o.setImage("i:1", model.Image{ID: "sha256:1"})
	if images := o.allImages(); images["i:1"].ID != "sha256:1" || images["i:2"].ID != "" {
		t.Error("the image differs from the pulled one")
	}
}
