package podstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestSandboxFault: the latest sandbox stays while it is the only one that is ready, has an
// address, and is what the manifest asks for.
func TestSandboxFault(t *testing.T) {
	for name, c := range map[string]struct {
		world func(w *modeltest.World)
		want  *SandboxFault
	}{
		"none":           {func(w *modeltest.World) { w.Sandboxes = nil }, &SandboxFault{Reason: model.SandboxMissing, Message: "no sandbox yet"}},
		"as it shall be": {func(*modeltest.World) {}, nil},
		"an older one that is not ready": {func(w *modeltest.World) {
			w.Sandboxes[0].Attempt = 1
			w.Sandbox("old", 0, model.SandboxNotReady)
		}, nil},
		"not ready": {
			func(w *modeltest.World) { w.Sandboxes[0].State = model.SandboxNotReady },
			&SandboxFault{Reason: model.SandboxNotReadyState, Message: "the sandbox is not ready"},
		},
		"two": {
			func(w *modeltest.World) { w.Sandbox("s1", 1, model.SandboxReady) },
			&SandboxFault{Reason: model.MultipleSandboxes, Message: "2 sandboxes are ready, one is wanted"},
		},
		"the newer one is not ready": {
			func(w *modeltest.World) { w.Sandbox("s1", 1, model.SandboxNotReady) },
			&SandboxFault{Reason: model.SandboxNotReadyState, Message: "the sandbox is not ready"},
		},
		"the node's network": {
			func(w *modeltest.World) { w.Sandboxes[0].HostNetwork = true },
			&SandboxFault{Reason: model.NetworkModeChanged, Message: "hostNetwork: true -> false", Edited: true, OtherNetwork: true},
		},
		"no address":            {func(w *modeltest.World) { w.Sandboxes[0].IPs = nil }, &SandboxFault{Reason: model.NoIP, Message: "the sandbox has no address"}},
		"no network is told of": {func(w *modeltest.World) { w.Sandboxes[0].IPs, w.Sandboxes[0].NoNetwork = nil, true }, nil},
		"other settings": {
			func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "v1:00" },
			&SandboxFault{Reason: model.SandboxConfigChanged, Message: "the pod's sandbox settings changed", Edited: true},
		},
		"made by another tool": {func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "" }, nil},
		"an edited hostname": {
			func(w *modeltest.World) { w.Desired = edited(t, func(pod *v1.Pod) { pod.Spec.Hostname = "other" }) },
			&SandboxFault{Reason: model.SandboxConfigChanged, Message: "the pod's sandbox settings changed", Edited: true},
		},
		"an edited image": {func(w *modeltest.World) {
			w.Desired = edited(t, func(pod *v1.Pod) { pod.Spec.Containers[0].Image = "i:2" })
		}, nil},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.WebPod)).Sandbox("s0", 0, model.SandboxReady)
		c.world(w)
		if diff := cmp.Diff(c.want, podOf(w).SandboxFault()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// edited is the manifest of the pod web, changed.
func edited(t *testing.T, edit func(*v1.Pod)) *podspec.Desired {
	t.Helper()
	d := modeltest.Load(t, modeltest.WebPod)
	edit(d.Pod)
	return d
}

// TestNodesNetworkNeedsNoAddress: containers on the node's network have the node's.
func TestNodesNetworkNeedsNoAddress(t *testing.T) {
	w := web(t, "  hostNetwork: true\n  containers: [{name: app, image: i:1}]\n").Sandbox("s0", 0, model.SandboxReady)
	w.Sandboxes[0].IPs, w.Sandboxes[0].HostNetwork = nil, true
	if fault := podOf(w).SandboxFault(); fault != nil {
		t.Errorf("%+v", fault)
	}
}
