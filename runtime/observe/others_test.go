package observe

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// publishing returns a manifest of a pod that publishes a port.
func publishing(name, port string) string {
	return strings.Replace(podText(name), "image: 'i:1'", "image: 'i:1', ports: [{containerPort: 80, hostPort: "+port+"}]", 1)
}

// onNode returns the snapshot of a pod on the node's network.
func onNode(ready runtimeapi.PodSandboxState) *snapshot.Pod {
	return &snapshot.Pod{Sandboxes: []*runtimeapi.PodSandboxStatus{{State: ready, Linux: &runtimeapi.LinuxPodSandboxStatus{
		Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}},
	}}}}
}

// TestPortsOfOtherPods checks that a pod has its port if it has a sandbox or is about to get one. A pod that has
// finished, never ran, or is unreadable does not.
func TestPortsOfOtherPods(t *testing.T) {
	ran := &model.LastRun{Sandbox: "s"}
	for name, c := range map[string]struct {
		other *state.Checkpoint
		taken bool
	}{
		"runs":            {&state.Checkpoint{Memory: model.Memory{LastRun: ran}}, true},
		"was stopped":     {&state.Checkpoint{Memory: model.Memory{LastRun: &model.LastRun{}}}, false},
		"never ran":       {&state.Checkpoint{}, false},
		"is about to run": {&state.Checkpoint{InFlight: map[string]state.InFlight{state.ThePod: {}}}, true},
		"has finished": {
			&state.Checkpoint{
				Memory: model.Memory{LastRun: ran, Completion: &model.Completion{Phase: v1.PodSucceeded}},
			},
			false,
		},
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

// TestPortsOfProcesses checks that a port of a process is in use, unless the pod runs on the node's network and the
// process may be its own.
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
		"on it, and stopped": {
			onNode(runtimeapi.PodSandboxState_SANDBOX_NOTREADY),
			map[string]string{port + "/TCP": "a process of this machine"},
		},
	} {
		if diff := cmp.Diff(c.want, l.observer.takenPorts(loadPod(t, publishing("web", port)).Pod, c.s)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	free := loadPod(t, publishing("web", fmt.Sprint(1)))
	if taken := l.observer.takenPorts(free.Pod, &snapshot.Pod{}); len(taken) > 0 {
		t.Errorf("an unused port: %v", taken)
	}
}

// TestPortsOnTheNodesNetwork checks that ports of containers on the node's network count between pods, in both
// directions. Processes do not hold such a pod: its containers report themselves that a port is in use.
func TestPortsOnTheNodesNetwork(t *testing.T) {
	onNetwork := func(name string, port any) string {
		return strings.Replace(strings.Replace(podText(name), "spec:\n", "spec:\n  hostNetwork: true\n", 1),
			"image: 'i:1'", fmt.Sprintf("image: 'i:1', ports: [{containerPort: %v}]", port), 1)
	}
	ran := &state.Checkpoint{Memory: model.Memory{LastRun: &model.LastRun{Sandbox: "s"}}}
	for name, pair := range map[string][2]string{
		"behind a hostPort": {publishing("other", "18080"), onNetwork("web", 18080)},
		"before a hostPort": {onNetwork("other", 18080), publishing("web", "18080")},
		"both":              {onNetwork("other", 18080), onNetwork("web", 18080)},
	} {
		l := newLab(t)
		l.remember(loadPod(t, pair[0]), ran)
		want := map[string]string{"18080/TCP": "pod default/other"}
		if diff := cmp.Diff(want, l.observer.takenPorts(loadPod(t, pair[1]).Pod, &snapshot.Pod{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if taken := newLab(t).observer.takenPorts(loadPod(t, onNetwork("web", port)).Pod, &snapshot.Pod{}); len(taken) > 0 {
		t.Errorf("a process has the port: %v", taken)
	}
}

// TestReservedPorts checks that a reserved port holds a pod although no process listens there.
func TestReservedPorts(t *testing.T) {
	l := newLab(t)
	l.observer.world.Reserved = []machine.Reserved{{Port: podspec.Port{Protocol: v1.ProtocolTCP, Number: 1}, For: "SSH"}}
	if taken := l.observer.takenPorts(loadPod(t, publishing("web", "1")).Pod, &snapshot.Pod{}); taken["1/TCP"] != "SSH" {
		t.Errorf("%v", taken)
	}
}

// TestPortsOfServicesAreTaken checks that a pod cannot have a port of the node that leads to a Service.
func TestPortsOfServicesAreTaken(t *testing.T) {
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	store := objects.New(&state.Locker{Layout: layout, Waiting: func(string) {}}, time.Now)
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeNodePort, Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80, NodePort: 30999}},
	}}
	if err := store.Put(t.Context(), []*podspec.Object{{Service: s}}, func(objects.Change) {}); err != nil {
		t.Fatal(err)
	}
	o := &Observer{world: World{Layout: layout, Objects: store}}
	pod := &v1.Pod{
		Spec: v1.PodSpec{
			Containers: []v1.Container{
				{
					Name: "a",
					Ports: []v1.ContainerPort{
						{HostPort: 30999, Protocol: v1.ProtocolTCP},
						{HostPort: 30999, Protocol: v1.ProtocolUDP},
					},
				},
			},
		},
	}
	if taken := o.takenPorts(pod, &snapshot.Pod{}); len(taken) != 1 || taken["30999/TCP"] != "service default/web" {
		t.Errorf("%v", taken)
	}
}
