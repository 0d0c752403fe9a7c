package podstatus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestSidecarThatExitedZeroIsNotWaiting checks that it counts as terminated, although it starts again.
func TestSidecarThatExitedZeroIsNotWaiting(t *testing.T) {
	d := modeltest.Load(t, strings.Replace(modeltest.WebPod,
		"{name: seed, image: i:1}", "{name: seed, image: i:1, restartPolicy: Always}", 1))
	for code, waits := range map[int32]bool{0: false, 1: true} {
		w := modeltest.Running(d)
		w.Containers[0].FinishedAt, w.Containers[0].ExitCode = modeltest.Noon().Add(-5*time.Second), code
		w.Memory.Backoffs["seed"] = model.Backoff{Duration: 10 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
		status := statusOf(w)
		if state := status.InitContainerStatuses[0].State; (state.Waiting != nil) != waits {
			t.Errorf("exited %d: %+v", code, state)
		}
	}
}

// TestAddresses checks that they are those of the active sandbox, the primary one first.
func TestAddresses(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	w.Sandboxes[0].IPs = []string{"10.0.0.2", "fd00::2"}
	s := statusOf(w)
	if s.PodIP != "10.0.0.2" || len(s.PodIPs) != 2 || s.PodIPs[1].IP != "fd00::2" {
		t.Errorf("%s, %v", s.PodIP, s.PodIPs)
	}
	w.Sandboxes[0].State = model.SandboxNotReady
	if s := statusOf(w); s.PodIP != "" || len(s.PodIPs) > 0 {
		t.Errorf("without a sandbox: %s, %v", s.PodIP, s.PodIPs)
	}
}

// TestAddressesOfEndedSandbox checks that a pod whose sandbox has ended keeps its addresses, unless it gets others or
// has no sandbox left.
func TestAddressesOfEndedSandbox(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	w.Sandboxes[0].IPs, w.Sandboxes[0].State = nil, model.SandboxNotReady
	w.Memory.LastRun = &model.LastRun{IPs: []string{"10.0.0.2", "fd00::2"}}
	if s := statusOf(w); s.PodIP != "10.0.0.2" || len(s.PodIPs) != 2 {
		t.Errorf("its sandbox has ended: %s, %v", s.PodIP, s.PodIPs)
	}
	w.Sandboxes = append(w.Sandboxes, model.Sandbox{ID: "s1", Attempt: 1, State: model.SandboxReady})
	if s := statusOf(w); s.PodIP != "" {
		t.Errorf("it has another sandbox: %s", s.PodIP)
	}
	w.Sandboxes = nil
	if s := statusOf(w); s.PodIP != "" {
		t.Errorf("it has no sandbox: %s", s.PodIP)
	}
}

// TestAddressesOfTheNode checks that they are in the status of each pod. A pod on the node's network has them as its
// own, before it has a sandbox and after.
func TestAddressesOfTheNode(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, modeltest.WebPod))
	w.NodeIPs = []string{"192.0.2.7", "2001:db8::7"}
	if s := statusOf(w); s.HostIP != "192.0.2.7" || len(s.HostIPs) != 2 || s.PodIP != "" {
		t.Errorf("a pod: %s, %v, %s", s.HostIP, s.HostIPs, s.PodIP)
	}
	w.Desired.Pod.Spec.HostNetwork = true
	if s := statusOf(w); s.PodIP != "192.0.2.7" || len(s.PodIPs) != 2 {
		t.Errorf("in the node's network: %s, %v", s.PodIP, s.PodIPs)
	}
	w.Sandbox("s0", 0, model.SandboxReady)
	w.Sandboxes[0].HostNetwork, w.Sandboxes[0].IPs = true, nil
	if s := statusOf(w); s.PodIP != "192.0.2.7" {
		t.Errorf("in the node's network, with a sandbox: %s", s.PodIP)
	}
}

// TestOrderOfStatuses checks that init containers are in the order of the manifest, and all others sorted by name.
func TestOrderOfStatuses(t *testing.T) {
	w := web(t, "  initContainers: [{name: q, image: i:1}, {name: p, image: i:1}]\n  containers: [{name: d, "+
		"image: i:1}, {name: c, image: i:1}]\n  ephemeralContainers: [{name: b, image: i:1}, {name: a, image: i:1}]\n")
	s := statusOf(w)
	var names []string
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	if got := strings.Join(names, " "); got != "q p c d a b" {
		t.Errorf("%s", got)
	}
}

// TestStatusOfAPod checks the QoS class and the start time in whole seconds.
func TestStatusOfAPod(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	w.Memory.StartTime = modeltest.Noon().Add(-90*time.Second - time.Millisecond)
	s := statusOf(w)
	if s.QOSClass != v1.PodQOSBestEffort || !s.StartTime.Time.Equal(modeltest.Noon().Add(-91*time.Second)) {
		t.Errorf("%s, began %s", s.QOSClass, s.StartTime)
	}
	if s := statusOf(modeltest.New(w.Desired)); s.StartTime != nil {
		t.Errorf("a pod that was never there began at %s", s.StartTime)
	}
}

// TestMessagesAreBounded checks that each container gets an equal share of twelve kilobytes.
func TestMessagesAreBounded(t *testing.T) {
	for containers, want := range map[int]int{1: 12 << 10, 3: 4 << 10} {
		var list []string
		for i := range containers {
			list = append(list, fmt.Sprintf("{name: c%d, image: i:1}", i))
		}
		w := web(t, "  containers: ["+strings.Join(list, ", ")+"]\n").Sandbox("s0", 0, model.SandboxReady)
		w.Container("s0", "c0", 0, model.Exited).Message = strings.Repeat("a", 20000)
		w.Container("s0", "c0", 1, model.Exited).Message = strings.Repeat("b", 20000)
		s := shownOf(t, w, "c0")
		if got := len(s.State.Terminated.Message); got != want {
			t.Errorf("%d containers: %d bytes", containers, got)
		}
		if got := len(s.LastTerminationState.Terminated.Message); got != want {
			t.Errorf("%d containers, last state: %d bytes", containers, got)
		}
	}
}

// TestConditionOfEvictedPod checks that only a pod that had to make room has the condition of a disruption.
func TestConditionOfEvictedPod(t *testing.T) {
	for name, c := range map[string]struct {
		why             model.Eviction
		reason, message string
	}{
		"its own limit":     {model.Eviction{OwnLimit: true}, "Evicted", ""},
		"a scarce resource": {model.Eviction{}, "Evicted", "TerminationByKubelet: m"},
		"a critical pod": {
			model.Eviction{Preempted: true},
			"Preempting",
			"TerminationByKubelet: Pod was preempted by Kubelet to accommodate a critical pod.",
		},
	} {
		w := web(t, "  containers: [{name: app, image: i:1}]\n")
		c.why.Message = "m"
		w.Memory.Eviction = &c.why
		s, disrupted := statusOf(w), ""
		for _, one := range s.Conditions {
			if one.Type == v1.DisruptionTarget && one.Status == v1.ConditionTrue {
				disrupted = one.Reason + ": " + one.Message
			}
		}
		if s.Phase != v1.PodFailed || s.Reason != c.reason || s.Message != "m" || disrupted != c.message {
			t.Errorf("%s: %s %s %s, condition %s", name, s.Phase, s.Reason, s.Message, disrupted)
		}
	}
}

// TestDeadlineFailsAPod checks that a pod fails whatever its containers do, unless it has succeeded.
func TestDeadlineFailsAPod(t *testing.T) {
	for code, want := range map[int32]v1.PodPhase{0: v1.PodSucceeded, 1: v1.PodFailed} {
		w := ended(t, code)
		w.Desired.Pod.Spec.ActiveDeadlineSeconds = new(int64)
		w.Memory.StartTime = modeltest.Noon().Add(-time.Second)
		s := statusOf(w)
		if s.Phase != want || (s.Message != "") != (want == v1.PodFailed) {
			t.Errorf("exit code %d: %s, %q", code, s.Phase, s.Message)
		}
	}
}
