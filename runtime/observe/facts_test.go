package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// fixedStatus is a runtime with a fixed status.
type fixedStatus struct {
	runtimeapi.RuntimeServiceClient
	status *runtimeapi.StatusResponse
}

// Status returns the fixed status.
func (f *fixedStatus) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	return f.status, nil
}

// TestHandlersOfAnOldRuntime checks that handlers come from the configuration if a runtime does not list them, as
// containerd 1.6, and from the list otherwise.
func TestHandlersOfAnOldRuntime(t *testing.T) {
	info := map[string]string{"config": `{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{},"gvisor":{"options":null}}}}`}
	listed := []*runtimeapi.RuntimeHandler{{Name: "kata"}}
	for name, c := range map[string]struct {
		status *runtimeapi.StatusResponse
		want   []string
	}{
		"in its configuration": {&runtimeapi.StatusResponse{Info: info}, []string{"", "gvisor", "runc"}},
		"listed":               {&runtimeapi.StatusResponse{Info: info, RuntimeHandlers: listed}, []string{"kata"}},
		"another runtime":      {&runtimeapi.StatusResponse{Info: map[string]string{"config": "{}"}}, nil},
	} {
		client := connect(t)
		client.RuntimeServiceClient = &fixedStatus{client.RuntimeServiceClient, c.status}
		facts, err := NewHost(client, state.Layout{}, Sources{}).RuntimeFacts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if facts.Status.GetInfo() != nil {
			t.Errorf("%s: its configuration is kept", name)
		}
		s := &snapshot.Pod{Runtime: facts.Runtime}
		if diff := cmp.Diff(c.want, s.Observed(model.PodRef{}, nil).Runtime.Handlers); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// connect connects to an in-memory runtime.
func connect(t *testing.T, names ...string) *cri.Client {
	t.Helper()
	_, _, endpoint := runtimetest.Start(t, names...)
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestRuntimeFactsAreQueriedOnce checks that a runtime is queried about itself once, and again only if it did not
// answer.
func TestRuntimeFactsAreQueriedOnce(t *testing.T) {
	l := newLab(t)
	l.server.Fail(runtimetest.Fault{Method: "Version", Times: 1, Err: errors.New("injected failure")})
	if _, err := l.host.RuntimeFacts(t.Context()); err == nil {
		t.Error("no facts are facts")
	}
	for range 2 {
		facts, err := l.host.RuntimeFacts(t.Context())
		if err != nil || facts.Name == "" || facts.Version == "" || facts.Status.GetInfo() != nil {
			t.Errorf("%+v, %v", facts, err)
		}
	}
	if n := l.count("Version"); n != 2 {
		t.Errorf("%d calls, including the failed one", n)
	}
}

// TestCgroupDrivers checks that the reported driver counts, and for a runtime that is too old to report it, its
// configuration.
func TestCgroupDrivers(t *testing.T) {
	replies := func(driver runtimeapi.CgroupDriver) *runtimeapi.RuntimeConfigResponse {
		return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: driver}}
	}
	configured := map[string]string{
		"config": `{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}}`,
	}
	for name, c := range map[string]struct {
		config *runtimeapi.RuntimeConfigResponse
		info   map[string]string
		want   bool
	}{
		"systemd":    {replies(runtimeapi.CgroupDriver_SYSTEMD), nil, true},
		"cgroupfs":   {replies(runtimeapi.CgroupDriver_CGROUPFS), configured, false},
		"configured": {nil, configured, true}, "unknown": {nil, nil, false},
	} {
		if got := usesSystemdCgroup(c.config, func() cri.Info { return cri.ReadInfo(c.info) }); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOldRuntimes checks that a runtime that does not support the query for its driver is not an error.
func TestOldRuntimes(t *testing.T) {
	l := newLab(t)
	l.server.Fail(runtimetest.Fault{Method: "RuntimeConfig", Times: 1, Err: status.Error(codes.Unimplemented, "unknown method")})
	if facts, err := l.host.RuntimeFacts(t.Context()); err != nil || facts.systemdCgroup {
		t.Errorf("%+v, %v", facts, err)
	}
}

// TestNode checks that the facts of the machine are read once, that those of the runtime are added once known, and that
// the roots are podctl's.
func TestNode(t *testing.T) {
	client := connect(t)
	read := 0
	h := NewHost(client, state.Layout{Root: "/state"}, Sources{
		CgroupRoot: "/own",
		Machine:    func() criconfig.Node { read++; return criconfig.Node{Name: "n"} },
	})
	if n := h.Node(); n.Name != "n" || n.CgroupRoot != "/own" || n.SeccompRoot == "" || n.Handlers != nil {
		t.Errorf("before the runtime was queried: %+v", n)
	}
	client.RuntimeServiceClient = &fixedStatus{client.RuntimeServiceClient, &runtimeapi.StatusResponse{
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Name: "kata", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}},
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}}
	h.Prefetch(t.Context())
	n := h.Node()
	if !n.Handlers["kata"].UserNamespaces || n.Handlers["kata"].RecursiveReadOnlyMounts || !n.SupplementalGroupsPolicy || read != 1 {
		t.Errorf("after it: %+v, read %d times", n, read)
	}
}

// TestKubelets checks that the error names a kubelet on the same runtime and the fixes. The search is repeated until
// the kubelet is gone.
func TestKubelets(t *testing.T) {
	err := error(&LiveKubeletError{machine.Kubelet{Process: "k3s", PID: 7, Endpoint: "unix:///x"}})
	for _, word := range []string{"k3s (pid 7)", "unix:///x", "podctl node up", "--allow-kubelet"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %q", word, err)
		}
	}
	looked := 0
	found := err
	h := NewHost(connect(t), state.Layout{}, Sources{Kubelet: func() error { looked++; return found }})
	for range 2 {
		if got := h.CheckKubelet(); !errors.Is(got, err) {
			t.Errorf("found %v", got)
		}
	}
	found = nil
	for range 2 {
		if got := h.CheckKubelet(); got != nil {
			t.Errorf("it is gone: %v", got)
		}
	}
	if looked != 3 {
		t.Errorf("looked %d times", looked)
	}
}

// TestFactsAreRenewed checks that facts are read again after Renew, and that the old ones count until then.
func TestFactsAreRenewed(t *testing.T) {
	machines := 0
	l := newLab(t)
	h := NewHost(l.client, l.layout, Sources{
		Machine: func() criconfig.Node { machines++; return criconfig.Node{} },
		Kubelet: func() error { return nil },
	})
	ask := func() {
		if _, err := h.RuntimeFacts(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Node()
	}
	ask()
	first := h.facts
	ask()
	if h.facts != first || machines != 1 {
		t.Errorf("queried twice without need, the machine %d times", machines)
	}
	h.Renew()
	if h.Node(); h.facts != first || machines != 2 {
		t.Errorf("the facts of the runtime are dropped at once; the machine was read %d times", machines)
	}
	if ask(); h.facts == first {
		t.Error("the runtime was not queried again")
	}
}

// TestNetworkThatIsNotReady checks that the runtime is queried each time until its network is ready. Concurrent calls
// share one answer.
func TestNetworkThatIsNotReady(t *testing.T) {
	l := newLab(t, "i:1")
	l.server.SetNetwork("no CNI configuration")
	ready := func() bool {
		facts, err := l.host.RuntimeFacts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return facts.networkReady()
	}
	first, second := ready(), ready()
	if first || second || l.count("Version") != 2 {
		t.Errorf("the network is not ready: %d questions", l.count("Version"))
	}
	l.reset()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if ready() {
				t.Error("the network is not ready")
			}
		})
	}
	group.Wait()
	if n := l.count("Version"); n > 10 {
		t.Errorf("%d questions of 20 calls that came together", n)
	}
	l.server.SetNetwork("")
	l.reset()
	if first, second = ready(), ready(); !first || !second || l.count("Version") != 1 {
		t.Errorf("the network is ready: %d questions", l.count("Version"))
	}
}

// TestNodeOf checks that pods of the API server see the name, the addresses and the allocatable resources of the Node,
// and that the capacity and the labels of the machine stay. Other pods see the machine.
func TestNodeOf(t *testing.T) {
	layout := state.Layout{Root: t.TempDir()}
	list := func(cpus string) v1.ResourceList { return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpus)} }
	h := NewHost(connect(t), layout, Sources{Machine: func() criconfig.Node {
		return criconfig.Node{Name: "host", Arch: "amd64", IPs: []string{"10.0.0.1"}, Allocatable: list("4")}
	}})
	own, api := podspectest.Desired(t, podspectest.Minimal), podspectest.FromAPI(t, podspectest.Minimal)
	shown := func(d *podspec.Desired) string {
		node := h.NodeOf(d)
		m := snapshot.MachineOf(&node)
		return fmt.Sprintf("%s %s %v, %s of %s%s", node.Name, m.Labels[v1.LabelHostname], m.NodeIPs,
			node.Allocatable.Cpu(), m.Capacity.Cpu(), strings.Join(append(node.ClusterDNS, node.ClusterDomain), " "))
	}
	const machine = "host host [10.0.0.1], 4 of 4"
	for _, d := range []*podspec.Desired{nil, own, api} {
		if got := shown(d); got != machine {
			t.Errorf("without a cluster: %s", got)
		}
	}
	identity := &model.NodeIdentity{
		Name: "n1", IPs: []string{"192.0.2.1", "2001:db8::1"}, Allocatable: list("3"),
		ClusterDNS: []string{" 10.0.0.10"}, ClusterDomain: "d.local",
	}
	if err := h.Identify(identity); err != nil {
		t.Fatal(err)
	}
	for d, want := range map[*podspec.Desired]string{nil: machine, own: machine, api: "n1 host [192.0.2.1 2001:db8::1], 3 of 4 10.0.0.10 d.local"} {
		if got := shown(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
