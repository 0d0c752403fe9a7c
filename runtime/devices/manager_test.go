package devices

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/devices/devicestest"
	"github.com/podctl/podctl/runtime/model"
)

const gpu = "example.com/gpu"

// diskFile is the record on disk.
type diskFile string

func (f diskFile) Read() ([]byte, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (f diskFile) Write(text []byte) error { return os.WriteFile(string(f), text, 0o600) }

// machine is a machine with a manager.
type machine struct {
	t      *testing.T
	dir    string
	socket string
	now    time.Time
	users  []model.Admitted
	// changed receives a value for each change.
	changed chan struct{}
	*Manager
	stop func()
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dir: t.TempDir(), now: time.Unix(1000, 0), changed: make(chan struct{}, 100)}
	m.socket = filepath.Join(m.dir, "kubelet.sock")
	m.start()
	t.Cleanup(func() { m.stop() })
	return m
}

// start starts an agent, which may have run before.
func (m *machine) start() {
	m.Manager = New(Settings{
		Dir: m.dir, File: diskFile(filepath.Join(m.dir, "record")), Now: func() time.Time { return m.now },
		Log:     slog.New(slog.DiscardHandler),
		Changed: func(context.Context, string) { m.changed <- struct{}{} },
		Users:   func() ([]model.Admitted, error) { return m.users, nil },
	})
	if err := RemoveSockets(m.dir); err != nil {
		m.t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(m.t.Context(), "unix", m.socket)
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Serve(ctx, l) }()
	m.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			m.t.Error(err)
		}
		m.stop = func() {}
	}
}

// plug starts a plugin and waits for its devices.
func (m *machine) plug(p *devicestest.Plugin, devices ...*pluginapi.Device) *devicestest.Plugin {
	m.t.Helper()
	if p.Resource == "" {
		p.Resource = gpu
	}
	if err := p.Start(m.t.Context(), m.socket, devices...); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		m.stop() // The manager must not write that the plugin has gone, into a directory that is being removed.
		p.Stop()
	})
	<-m.changed
	return p
}

// shows checks the resources of the Node.
func (m *machine) shows(capacity, allocatable int64) {
	m.t.Helper()
	all, healthy := m.Capacity()
	a, b := all[gpu], healthy[gpu]
	if a.Value() != capacity || b.Value() != allocatable || len(all) != 1 {
		m.t.Errorf("the Node shows %v of %v, not %d of %d", healthy, all, allocatable, capacity)
	}
}

// usedBy checks which pods are shown as users of the devices.
func (m *machine) usedBy(want ...types.UID) {
	m.t.Helper()
	var pods []types.UID
	for _, u := range m.Resources()[0].Uses {
		pods = append(pods, u.Pod)
	}
	if !slices.Equal(pods, want) {
		m.t.Errorf("used by %v, not %v", pods, want)
	}
}

// TestRepeatedReports: a report that has not changed writes nothing.
func TestRepeatedReports(t *testing.T) {
	m := newMachine(t)
	p := m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"))
	if err := os.Remove(filepath.Join(m.dir, "record")); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	connected := m.resources[gpu].plugin
	m.mu.Unlock()
	m.report(gpu, connected, []*pluginapi.Device{devicestest.Healthy("a")})
	if _, err := os.Stat(filepath.Join(m.dir, "record")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record was written: %v", err)
	}
	p.Set(devicestest.Sick("a"))
	<-m.changed
	if _, err := os.Stat(filepath.Join(m.dir, "record")); err != nil {
		t.Error(err)
	}
}

// asks returns a request of a pod with containers that need one device each, or the given number.
func asks(pod string, containers ...string) *model.DeviceRequest {
	r := &model.DeviceRequest{Pod: types.UID(pod)}
	for _, c := range containers {
		name, ends := strings.CutPrefix(c, "init:")
		r.Containers = append(r.Containers, model.DeviceNeed{
			Container: name, Amounts: map[string]int64{gpu: 1}, Ends: ends,
		})
	}
	return r
}

// choose returns the devices of a pod, by container. A fault is its text.
func (m *machine) choose(r *model.DeviceRequest) map[string]string {
	m.t.Helper()
	chosen, err := m.ChooseDevices(m.t.Context(), r)
	if err != nil {
		m.t.Fatal(err)
	}
	found := map[string]string{}
	for container, sets := range chosen.Sets {
		for _, s := range sets {
			found[container] += strings.Join(s.IDs, ",")
			if s.Allocated {
				found[container] += " allocated"
			}
		}
	}
	for container, f := range chosen.Faults {
		found[container] = f.Message
		if f.Rejects {
			found[container] = "rejects: " + f.Message
		}
	}
	return found
}

// give allocates devices for a pod that uses the node.
func (m *machine) give(r *model.DeviceRequest) error {
	m.t.Helper()
	m.users = append(m.users, model.Admitted{Pod: model.PodRef{UID: r.Pod}})
	chosen, err := m.ChooseDevices(m.t.Context(), r)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, need := range r.Containers {
		err = errors.Join(err, m.AllocateDevices(m.t.Context(), r.Pod, need.Container, chosen.Unallocated(need.Container)))
	}
	return err
}

// expect compares the devices of a pod.
func (m *machine) expect(r *model.DeviceRequest, want map[string]string) {
	m.t.Helper()
	got := m.choose(r)
	for c, text := range want {
		if !strings.Contains(got[c], text) || !strings.Contains(text, " ") && got[c] != text {
			m.t.Errorf("container %s of pod %s gets %q, not %q", c, r.Pod, got[c], text)
		}
	}
}

// TestCapacity: the Node shows all devices and the healthy ones. If the plugin is gone, none is healthy, and after five
// minutes there are none (kubelet: TestGetCapacity).
func TestCapacity(t *testing.T) {
	m := newMachine(t)
	p := m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	m.shows(2, 2)
	p.Set(devicestest.Healthy("a"), devicestest.Sick("b"))
	<-m.changed
	m.shows(2, 1)
	p.Stop()
	<-m.changed
	m.shows(2, 0)
	m.now = m.now.Add(gonePeriod)
	m.shows(2, 0)
	m.now = m.now.Add(time.Second)
	m.shows(0, 0)
	m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"))
	m.shows(1, 1)
}

// TestFailingPlugins: a plugin whose options cannot be read is not used. One whose list fails has no devices, and is not
// called again.
func TestFailingPlugins(t *testing.T) {
	for call, want := range map[string]string{
		"GetDevicePluginOptions": "failed to get device plugin options: ", "ListAndWatch": "",
	} {
		m := newMachine(t)
		p := &devicestest.Plugin{Resource: gpu, Fail: func(c string) error {
			if c == call {
				return errors.New("broken")
			}
			return nil
		}}
		err := p.Start(t.Context(), m.socket, devicestest.Healthy("a"))
		t.Cleanup(p.Stop)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) || len(m.Resources()) != 0 {
				t.Errorf("%s: %v, %v", call, err, m.Resources())
			}
			continue
		}
		<-m.changed
		m.shows(0, 0)
		if got := m.Resources()[0]; err != nil || got.Connected || !strings.Contains(got.Error, "broken") {
			t.Errorf("%s: %v, %+v", call, err, got)
		}
		if calls := p.Calls(); len(calls) != 2 {
			t.Errorf("calls %v", calls)
		}
	}
}

// TestHostileRegistrations: a registration cannot make the agent connect to a socket elsewhere, use a resource of
// Kubernetes, or register without end.
func TestHostileRegistrations(t *testing.T) {
	m := newMachine(t)
	for _, r := range []*pluginapi.RegisterRequest{
		{},
		{Version: "v1alpha1", Endpoint: "a.sock", ResourceName: gpu},
		{Version: "v1beta1", ResourceName: gpu},
		{Version: "v1beta1", Endpoint: "../agent.sock", ResourceName: gpu},
		{Version: "v1beta1", Endpoint: "/run/x.sock", ResourceName: gpu},
		{Version: "v1beta1", Endpoint: "a.sock", ResourceName: "cpu"},
		{Version: "v1beta1", Endpoint: "a.sock", ResourceName: "kubernetes.io/x"},
		{Version: "v1beta1", Endpoint: "a.sock", ResourceName: "example.com/" + strings.Repeat("x", 100)},
	} {
		_, err := m.Register(t.Context(), r)
		elsewhere := strings.Contains(r.GetEndpoint(), "/")
		if err == nil || elsewhere && !strings.Contains(err.Error(), "is not the name of a socket") {
			t.Errorf("%v: %v", r, err)
		}
	}
	for i := range maxResources {
		m.resources[strings.Repeat("x", i+1)] = &resource{plugin: &plugin{}}
	}
	another := &pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "a", ResourceName: gpu}
	if err := m.check(another); err == nil || !strings.Contains(err.Error(), "registered already") {
		t.Error(err)
	}
	m.resources["x"].plugin = nil // It has been gone for long.
	if err := m.check(another); err != nil {
		t.Error(err)
	}
}

// TestDevicesSurviveRestarts: a container keeps its devices when its plugin or the agent restarts, and other pods do not
// get them.
func TestDevicesSurviveRestarts(t *testing.T) {
	m := newMachine(t)
	answer := func(ids []string) *pluginapi.ContainerAllocateResponse {
		return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{"GPU": ids[0]}}
	}
	a := devicestest.Healthy("a")
	a.Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: 0}, {ID: 1}}}
	p := m.plug(&devicestest.Plugin{Answer: answer}, a, devicestest.Healthy("b"))
	if err := m.give(asks("p1", "c")); err != nil {
		t.Fatal(err)
	}
	m.expect(asks("p1", "c"), map[string]string{"c": "a allocated"})
	if has, all := m.DevicesOf("p1", "c"), m.HealthyDevices(); len(has) != 1 || has[0].ID != "a" || len(all) != 2 {
		t.Errorf("%v, %v", has, all)
	}
	p.Stop()
	<-m.changed
	m.expect(asks("p1", "c"), map[string]string{"c": "a allocated"})
	m.expect(asks("p2", "c"), map[string]string{"c": "rejects: no healthy devices"})

	m.stop()
	m.start()
	m.shows(0, 0)
	m.expect(asks("p1", "c"), map[string]string{"c": "has not registered since"})
	m.plug(&devicestest.Plugin{Answer: answer}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	m.expect(asks("p1", "c"), map[string]string{"c": "a allocated"})
	m.expect(asks("p2", "c"), map[string]string{"c": "b"})
	if has := m.DevicesOf("p1", "c"); len(has) != 1 || !slices.Equal(has[0].NUMA, []int64{0, 1}) {
		t.Errorf("%v", has)
	}
	config, err := m.PrepareDevices(t.Context(), "p1", "c")
	if err != nil || len(config.Env) != 1 || config.Env[0] != (model.DeviceEnv{Name: "GPU", Value: "a"}) {
		t.Errorf("%+v, %v", config, err)
	}
}

// TestFreedDevices: devices are free once their pod has ended. Until all pods are known, and while a pod ends, others
// wait for them.
func TestFreedDevices(t *testing.T) {
	m := newMachine(t)
	m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"))
	if err := m.give(asks("p1", "c")); err != nil {
		t.Fatal(err)
	}
	m.users = nil
	m.expect(asks("p2", "c"), map[string]string{"c": "podctl waits"})
	m.Settle()
	m.users = []model.Admitted{{Pod: model.PodRef{UID: "p1"}, Terminating: true}}
	m.expect(asks("p2", "c"), map[string]string{"c": "podctl waits"})
	m.users[0].Terminating = false
	m.expect(asks("p2", "c"), map[string]string{
		"c": "rejects: requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0",
	})
	m.usedBy("p1")
	m.users = nil
	m.usedBy()
	m.expect(asks("p2", "c"), map[string]string{"c": "a"})
	if err := m.give(asks("p2", "c")); err != nil {
		t.Fatal(err)
	}
	m.users = []model.Admitted{{Pod: model.PodRef{UID: "p2"}}}
	m.usedBy("p2")
}

// TestContainersOfAPod: an init container leaves its devices to those after it (kubelet:
// TestInitContainerDeviceAllocation). A pod gets all its devices or none.
func TestContainersOfAPod(t *testing.T) {
	m := newMachine(t)
	m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	r := asks("p1", "init:i", "init:j", "sidecar", "c")
	want := map[string]string{"i": "a", "j": "a", "sidecar": "a", "c": "b"}
	m.expect(r, want)
	if err := m.give(r); err != nil {
		t.Fatal(err)
	}
	for c := range want {
		want[c] += " allocated"
	}
	m.expect(r, want)
	m.expect(asks("p2", "c"), map[string]string{"c": "Requested: 1, Available: 0"})
	m.expect(asks("p1", "sidecar", "d"), map[string]string{"d": "Requested: 1, Available: 0"})
	m.users = nil
	m.Settle()
	three := asks("p3", "x", "y")
	three.Containers[1].Amounts[gpu] = 2
	m.expect(three, map[string]string{"x": "container y: requested number", "y": "Requested: 2, Available: 1"})
}

// TestPreferredDevices: the plugin prefers devices, but cannot give one that is in use or unhealthy.
func TestPreferredDevices(t *testing.T) {
	m := newMachine(t)
	m.plug(&devicestest.Plugin{
		Options: &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true, PreStartRequired: true},
		Prefer:  func([]string) []string { return []string{"c", "d", "e", "b"} },
	}, devicestest.Healthy("a"), devicestest.Healthy("b"), devicestest.Healthy("c"), devicestest.Sick("d"))
	if err := m.give(asks("p1", "x")); err != nil {
		t.Fatal(err)
	}
	two := asks("p2", "x")
	two.Containers[0].Amounts[gpu] = 2
	m.expect(asks("p1", "x"), map[string]string{"x": "c allocated"})
	m.expect(two, map[string]string{"x": "a,b"})
}

// TestPreStart: a plugin that requires it is called before each start, and a start without it fails.
func TestPreStart(t *testing.T) {
	m := newMachine(t)
	required := &pluginapi.DevicePluginOptions{PreStartRequired: true}
	p := m.plug(&devicestest.Plugin{Options: required}, devicestest.Healthy("a"))
	if err := m.give(asks("p1", "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.PrepareDevices(t.Context(), "p1", "x"); err != nil || !slices.Contains(p.Calls(), "PreStartContainer") {
		t.Error(err, p.Calls())
	}
	p.Stop()
	<-m.changed
	if _, err := m.PrepareDevices(t.Context(), "p1", "x"); err == nil {
		t.Error("started without its plugin")
	}
}

// TestTakenDevices: of two passes that chose the same device, one chooses again. A failed allocation leaves it free.
func TestTakenDevices(t *testing.T) {
	m := newMachine(t)
	failing := true
	m.plug(&devicestest.Plugin{Fail: func(call string) error {
		if call == "Allocate" && failing {
			return errors.New("no power")
		}
		return nil
	}}, devicestest.Healthy("a"), devicestest.Sick("b"))
	err := m.give(asks("p1", "x"))
	if err == nil || !strings.Contains(err.Error(), "no power") || errors.Is(err, model.ErrDevicesTaken) {
		t.Error(err)
	}
	failing = false
	m.expect(asks("p2", "x"), map[string]string{"x": "a"})
	if err := m.give(asks("p1", "x")); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"a", "b", "none"} {
		sets := []model.DeviceSet{{Resource: gpu, IDs: []string{id}}}
		if err := m.AllocateDevices(t.Context(), "p2", "x", sets); !errors.Is(err, model.ErrDevicesTaken) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestDamagedRecord: a damaged record does not prevent the start of the agent.
func TestDamagedRecord(t *testing.T) {
	m := newMachine(t)
	m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"))
	if err := m.give(asks("p1", "x")); err != nil {
		t.Fatal(err)
	}
	m.stop()
	file := diskFile(filepath.Join(m.dir, "record"))
	text, err := file.Read()
	if err != nil || !strings.Contains(string(text), `"x"`) {
		t.Fatal(err, string(text))
	}
	if err = file.Write([]byte(strings.Replace(string(text), `"x"`, `"y"`, 1))); err != nil {
		t.Fatal(err)
	}
	m.start()
	if len(m.records) != 0 {
		t.Errorf("%v", m.records)
	}
}

// TestRepeatedAllocation: if a process is killed while its call allocates devices, the next call for the same container
// succeeds, and the end of the first call does not free its devices.
func TestRepeatedAllocation(t *testing.T) {
	m := newMachine(t)
	calls := make(chan chan error)
	m.plug(&devicestest.Plugin{Fail: func(call string) error {
		if call != "Allocate" {
			return nil
		}
		answer := make(chan error)
		calls <- answer
		return <-answer
	}}, devicestest.Healthy("a"))
	sets := []model.DeviceSet{{Resource: gpu, IDs: []string{"a"}}}
	ended := []chan error{make(chan error, 1), make(chan error, 1)}
	var answers []chan error
	for _, end := range ended {
		go func() { end <- m.AllocateDevices(t.Context(), "p1", "x", sets) }()
		answers = append(answers, <-calls)
	}
	answers[0] <- errors.New("killed")
	if err := <-ended[0]; !errors.Is(err, model.ErrDevicesTaken) {
		t.Error(err)
	}
	m.expect(asks("p2", "x"), map[string]string{"x": "podctl waits"})
	answers[1] <- nil
	if err := <-ended[1]; err != nil {
		t.Error(err)
	}
	m.expect(asks("p1", "x"), map[string]string{"x": "a allocated"})
}

// TestHealth: the status of a container has the health of its devices that the plugin reported last, also after the
// plugin has gone. A report that changes nothing is no news.
func TestHealth(t *testing.T) {
	m := newMachine(t)
	p := m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	if err := m.give(asks("p1", "c")); err != nil {
		t.Fatal(err)
	}
	health := func() string {
		s := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c"}, {Name: "other"}}}
		if m.AddHealth("p1", &s); s.ContainerStatuses[1].AllocatedResourcesStatus != nil {
			t.Errorf("%+v", s.ContainerStatuses[1])
		}
		own := s.ContainerStatuses[0].AllocatedResourcesStatus
		if len(own) != 1 || own[0].Name != gpu || len(own[0].Resources) != 1 || own[0].Resources[0].ResourceID != "a" {
			t.Fatalf("%+v", own)
		}
		return string(own[0].Resources[0].Health)
	}
	if got := health(); got != "Healthy" {
		t.Error(got)
	}
	same := []*pluginapi.Device{devicestest.Healthy("a"), devicestest.Healthy("b")}
	if m.report(gpu, m.resources[gpu].plugin, same); len(m.changed) > 0 {
		t.Error("the same devices are news")
	}
	p.Set(devicestest.Sick("a"), devicestest.Healthy("b"))
	if <-m.changed; health() != "Unhealthy" {
		t.Error("healthy")
	}
	p.Stop()
	if <-m.changed; health() != "Unhealthy" {
		t.Error("healthy after the plugin has gone")
	}
}
