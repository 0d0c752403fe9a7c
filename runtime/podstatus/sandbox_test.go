package podstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestSandboxFault checks that the latest sandbox stays if it is the only ready one, has an address, and matches the
// manifest.
func TestSandboxFault(t *testing.T) {
	for name, c := range map[string]struct {
		world func(w *modeltest.World)
		want  *SandboxFault
	}{
		"none": {func(w *modeltest.World) {
			w.Sandboxes = nil
		}, &SandboxFault{Reason: model.SandboxMissing, Message: "no sandbox yet"}},
		"up to date": {func(*modeltest.World) {}, nil},
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
			&SandboxFault{Reason: model.MultipleSandboxes, Message: "2 sandboxes are ready instead of one"},
		},
		"the newer one is not ready": {
			func(w *modeltest.World) { w.Sandbox("s1", 1, model.SandboxNotReady) },
			&SandboxFault{Reason: model.SandboxNotReadyState, Message: "the sandbox is not ready"},
		},
		"the node's network": {
			func(w *modeltest.World) { w.Sandboxes[0].HostNetwork = true },
			&SandboxFault{Reason: model.NetworkModeChanged, Message: "hostNetwork: true -> false", Edited: true, OtherNetwork: true},
		},
		"no address": {func(w *modeltest.World) {
			w.Sandboxes[0].IPs = nil
		}, &SandboxFault{Reason: model.NoIP, Message: "the sandbox has no address"}},
		"no network is reported": {func(w *modeltest.World) { w.Sandboxes[0].IPs, w.Sandboxes[0].NoNetwork = nil, true }, nil},
		"other settings": {
			func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "v1:00" },
			&SandboxFault{Reason: model.SandboxConfigChanged, Message: "the pod's sandbox settings changed", Edited: true},
		},
		"created by another tool": {func(w *modeltest.World) { w.Sandboxes[0].SpecHash = "" }, nil},
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

// TestRestartedWorkload checks that a sandbox from before a restart of the pod's workload is replaced. A restart in the
// future, without a time, or of another workload is ignored, and so is an unknown creation time.
func TestRestartedWorkload(t *testing.T) {
	made := modeltest.Noon().Add(-time.Hour)
	for name, c := range map[string]struct {
		at, kind string
		made     time.Time
		want     bool
	}{
		"after it was created":      {"2026-05-04T11:00:00.000000001Z", "ReplicaSet", made, true},
		"in another time zone":      {"2026-05-04T13:30:00+02:00", "Deployment", made, true},
		"just now":                  {"2026-05-04T12:00:00Z", "StatefulSet", made, true},
		"of a DaemonSet":            {"2026-05-04T12:00:00Z", "DaemonSet", made, true},
		"when it was created":       {"2026-05-04T11:00:00Z", "ReplicaSet", made, false},
		"still to come":             {"2026-05-04T12:00:00.5Z", "ReplicaSet", made, false},
		"no time":                   {"yesterday", "ReplicaSet", made, false},
		"none":                      {"", "ReplicaSet", made, false},
		"of a Job":                  {"2026-05-04T12:00:00Z", "Job", made, false},
		"of a pod of its own":       {"2026-05-04T12:00:00Z", "", made, false},
		"creation time unknown":     {"2026-05-04T12:00:00Z", "ReplicaSet", time.Time{}, false},
		"created in the future too": {"2026-05-04T12:00:00Z", "ReplicaSet", made.Add(2 * time.Hour), false},
	} {
		w := modeltest.New(edited(t, func(pod *v1.Pod) {
			pod.Annotations = map[string]string{podspec.AnnotationRestartedAt: c.at}
			if c.kind != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: c.kind, Name: "web", Controller: new(true)}}
			}
		})).Sandbox("s0", 0, model.SandboxReady)
		w.Sandboxes[0].CreatedAt = c.made
		if fault := podOf(w).SandboxFault(); (fault != nil) != c.want ||
			fault != nil && (fault.Reason != model.RolloutRestart || !fault.Edited) {
			t.Errorf("%s: %+v", name, fault)
		}
	}
}

// edited returns the manifest of the pod web with a change.
func edited(t *testing.T, edit func(*v1.Pod)) *podspec.Desired {
	t.Helper()
	d := modeltest.Load(t, modeltest.WebPod)
	edit(d.Pod)
	return d
}

// TestNodesNetworkNeedsNoAddress checks that containers on the node's network use the node's addresses.
func TestNodesNetworkNeedsNoAddress(t *testing.T) {
	w := web(t, "  hostNetwork: true\n  containers: [{name: app, image: i:1}]\n").Sandbox("s0", 0, model.SandboxReady)
	w.Sandboxes[0].IPs, w.Sandboxes[0].HostNetwork = nil, true
	if fault := podOf(w).SandboxFault(); fault != nil {
		t.Errorf("%+v", fault)
	}
}
