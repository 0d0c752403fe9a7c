package observe

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// publishing is a manifest of a pod that publishes a port.
func publishing(name, port string) string {
	return strings.Replace(podText(name), "image: 'i:1'", "image: 'i:1', ports: [{containerPort: 80, hostPort: "+port+"}]", 1)
}

// onNode is the snapshot of a pod on the node's network.
func onNode(ready runtimeapi.PodSandboxState) *snapshot.Pod {
	return &snapshot.Pod{Sandboxes: []*runtimeapi.PodSandboxStatus{{State: ready, Linux: &runtimeapi.LinuxPodSandboxStatus{
		Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}},
	}}}}
}

// TestPortsOfOtherPods: a port is taken by a pod that has a sandbox or is about to, and by none
// that has finished, never ran, or cannot be read.
func TestPortsOfOtherPods(t *testing.T) {
	ran := &model.LastRun{Sandbox: "s"}
	for name, c := range map[string]struct {
		other *state.Checkpoint
		taken bool
	}{
		"runs": {&state.Checkpoint{Memory: model.Memory{LastRun: ran}}, true}, "was stopped": {&state.Checkpoint{Memory: model.Memory{LastRun: &model.LastRun{}}}, false}, "never ran": {&state.Checkpoint{}, false},
		"is about to run": {&state.Checkpoint{InFlight: map[string]state.InFlight{state.ThePod: {}}}, true},
		"has finished":    {&state.Checkpoint{Memory: model.Memory{LastRun: ran, Completion: &model.Completion{Phase: v1.PodSucceeded}}}, false},
	} {
		l := newLab(t)
		l.remember(loadPod(t, publishing("other", "18080")), c.other)
		want := map[string]string{}
		if c.taken {
			want["18080/TCP"] = "pod default/other"
		}
		if diff := cmp.Diff(want, l.observer.takenPorts(loadPod(t, publishing("web", "18080")).Pod, &snapshot.Pod{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	l := newLab(t)
	web := loadPod(t, publishing("web", "18080"))
	l.remember(web, &state.Checkpoint{Memory: model.Memory{LastRun: ran}})
	l.remember(loadPod(t, publishing("other", "18081")), &state.Checkpoint{Memory: model.Memory{LastRun: ran}})
	if taken := l.observer.takenPorts(web.Pod, &snapshot.Pod{}); taken == nil || len(taken) > 0 {
		t.Errorf("its own port and another one: %v", taken)
	}
	if taken := l.observer.takenPorts(l.pod("db").Pod, &snapshot.Pod{}); taken != nil {
		t.Errorf("a pod that publishes none: %v", taken)
	}
}

// TestPortsOfProcesses: a process of the machine has a port, unless the pod is on the node's
// network while it runs: then it is taken for its own.
func TestPortsOfProcesses(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	l := newLab(t)
	for name, c := range map[string]struct {
		s    *snapshot.Pod
		want map[string]string
	}{
		"not on the node's network": {&snapshot.Pod{}, map[string]string{port + "/TCP": "a process of this machine"}},
		"on it":                     {onNode(runtimeapi.PodSandboxState_SANDBOX_READY), map[string]string{}},
		"on it, and stopped":        {onNode(runtimeapi.PodSandboxState_SANDBOX_NOTREADY), map[string]string{port + "/TCP": "a process of this machine"}},
	} {
		if diff := cmp.Diff(c.want, l.observer.takenPorts(loadPod(t, publishing("web", port)).Pod, c.s)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	free := loadPod(t, publishing("web", fmt.Sprint(1)))
	if taken := l.observer.takenPorts(free.Pod, &snapshot.Pod{}); len(taken) > 0 {
		t.Errorf("a port that nobody has: %v", taken)
	}
}
