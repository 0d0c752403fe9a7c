package executor

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestKillMessages compares the reasons of stops with those of kubelet 1.36.3. Whether a container runs again depends
// on its policy, not on whether this pass starts it.
func TestKillMessages(t *testing.T) {
	spec := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: Always\n" +
		"  initContainers: [{name: s, image: 'i:1', restartPolicy: Always}]\n" +
		"  containers: [{name: a, image: 'i:1'}, {name: never, image: 'i:1', restartPolicy: Never}]\n"
	pod := podspectest.Desired(t, spec).Pod
	for name, c := range map[string]struct {
		container string
		kind      podspec.ContainerType
		reason    model.Reason
		killPod   bool
		pod       *v1.Pod
		want      string
	}{
		"liveness": {
			"a",
			podspec.Regular,
			model.LivenessFailed,
			false,
			pod,
			"Container a failed liveness probe, will be restarted",
		},
		"startup": {
			"a",
			podspec.Regular,
			model.StartupFailed,
			false,
			pod,
			"Container a failed startup probe, will be restarted",
		},
		"liveness, for good": {"never", podspec.Regular, model.LivenessFailed, false, pod, "Container never failed liveness probe"},
		"the last that ran":  {"never", podspec.Regular, model.LivenessFailed, true, pod, "Stopping container never"},
		"an edit": {
			"never",
			podspec.Regular,
			model.SpecChanged,
			false,
			pod,
			"Container never definition changed, will be restarted",
		},
		"a sidecar's probe": {"s", podspec.Sidecar, model.StartupFailed, false, pod, "Init container s failed startup probe"},
		"a sidecar's edit":  {"s", podspec.Sidecar, model.SpecChanged, false, pod, "Init container s definition changed"},
		"a resize":          {"a", podspec.Regular, model.Resized, false, pod, "Container a resize requires restart"},
		"an unknown state": {
			"a",
			podspec.Regular,
			model.UnknownState,
			false,
			pod,
			`Container is in "unknown" state, try killing it before restart`,
		},
		"of an init container": {
			"s",
			podspec.Sidecar,
			model.UnknownState,
			false,
			pod,
			`Init container is in "unknown" state, try killing it before restart`,
		},
		"all restart":               {"a", podspec.Regular, model.RestartAllContainers, false, pod, "killing"},
		"the pod goes":              {"a", podspec.Regular, model.Deleted, true, nil, "Stopping container a"},
		"removed from the manifest": {"x", podspec.Regular, model.RemovedFromSpec, false, pod, "Stopping container x: details"},
		"the policy is unknown":     {"a", podspec.Regular, model.LivenessFailed, false, nil, "Container a failed liveness probe"},
	} {
		s := &plan.Step{Kind: plan.StopContainer, Container: c.container, ContainerType: c.kind, Reason: c.reason, Message: "details"}
		if got := killMessage(&plan.Plan{KillPod: c.killPod}, c.pod, s); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
