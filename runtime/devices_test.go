package runtime

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
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/metrics"
	"github.com/podctl/podctl/runtime/devices"
	"github.com/podctl/podctl/runtime/devices/devicestest"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// deviceLab is a machine whose agent serves device plugins. Passes reach the agent by its socket.
type deviceLab struct {
	*faultLab
	socket  string
	changed chan struct{}
	api.Backend
	devices *devices.Manager
}

func (d *deviceLab) Devices() model.DeviceManager { return d.devices }

func (d *deviceLab) Metrics() *metrics.Metrics { return metrics.New(nil) }

func newDeviceLab(t *testing.T) *deviceLab {
	d := &deviceLab{faultLab: newFaultLab(t, faultShape{}), changed: make(chan struct{}, 100)}
	d.socket = state.DevicesSocket(d.layout)
	if err := errors.Join(d.layout.Prepare(), os.MkdirAll(filepath.Dir(d.socket), 0o750)); err != nil {
		t.Fatal(err)
	}
	d.devices = devices.New(devices.Settings{
		Dir: filepath.Dir(d.socket), File: state.Devices(d.layout), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Users:   func() ([]model.Admitted, error) { return d.engine.Observer.Others(model.PodRef{}) },
		Changed: func(context.Context, string) { d.changed <- struct{}{} },
	})
	d.devices.Settle()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- d.devices.Serve(ctx, l) }()
	go func() { ended <- api.Serve(ctx, d.layout.AgentSocket(), d) }()
	t.Cleanup(func() {
		stop()
		if failed := errors.Join(<-ended, <-ended); failed != nil {
			t.Error(failed)
		}
	})
	client := api.Client{Socket: d.layout.AgentSocket()}
	for {
		if _, err = client.ChooseDevices(ctx, &model.DeviceRequest{}); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	d.engine.UseDevices(client)
	return d
}

// plug starts a plugin and waits for its devices.
func (d *deviceLab) plug(p *devicestest.Plugin, listed ...*pluginapi.Device) *devicestest.Plugin {
	d.t.Helper()
	p.Resource = "example.com/gpu"
	if err := p.Start(d.t.Context(), d.socket, listed...); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(p.Stop)
	<-d.changed
	return p
}

// gpuPod returns a pod with one device.
func gpuPod(name, image string) string {
	return strings.NewReplacer("NAME", name, "IMAGE", image).Replace(`{apiVersion: v1, kind: Pod, metadata: {name: NAME},
spec: {containers: [{name: a, image: "IMAGE", resources: {limits: {example.com/gpu: 1}}}, {name: b, image: "i:1"}]}}`)
}

// plan returns the plan of a pod.
func (d *deviceLab) plan(pod *podspec.Desired) *plan.Plan {
	d.t.Helper()
	p, err := d.engine.Pods.Plan(d.t.Context(), pod, plan.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// given returns the devices that the steps of a plan allocate.
func given(p *plan.Plan) (texts []string) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == plan.AllocateDevices {
			texts = append(texts, s.Container+": "+s.Detail())
		}
	}
	return texts
}

// mounted returns the paths that plugins mount into running containers of that name.
func (d *deviceLab) mounted(pod string) (paths []string) {
	d.t.Helper()
	s, err := d.engine.Observer.Snapshot(d.t.Context(), d.load(gpuPod(pod, "i:1")))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range s.Containers {
		for _, m := range c.Status.GetMounts() {
			if strings.HasPrefix(m.GetHostPath(), "/gpus/") && c.Status.GetState() == 1 {
				paths = append(paths, m.GetHostPath())
			}
		}
	}
	return paths
}

// mounting is the answer of a plugin whose devices are directories.
func mounting(ids []string) *pluginapi.ContainerAllocateResponse {
	return &pluginapi.ContainerAllocateResponse{
		Mounts: []*pluginapi.Mount{{HostPath: "/gpus/" + ids[0], ContainerPath: "/gpu"}},
	}
}

// TestDevicesOfPods: a pod waits for a device plugin, then its plan shows the device that it gets. It keeps the device
// when its container is replaced, and another pod gets the device once it is deleted.
func TestDevicesOfPods(t *testing.T) {
	d := newDeviceLab(t)
	one, two := d.load(gpuPod("one", "i:1")), d.load(gpuPod("two", "i:1"))
	p := d.plan(one)
	if len(p.Holds) != 1 || p.Holds[0].Container != "a" || p.Holds[0].Reason != "OutOfexample.com/gpu" ||
		p.Holds[0].Message != "no device plugin has registered example.com/gpu" {
		t.Errorf("%+v", p.Holds)
	}
	d.plug(&devicestest.Plugin{Answer: mounting}, devicestest.Healthy("0"))
	if got := given(d.plan(one)); !slices.Equal(got, []string{"a: example.com/gpu=0"}) {
		t.Errorf("%v", got)
	}
	if err := d.converge(gpuPod("one", "i:1")); err != nil {
		t.Fatal(err)
	}
	if got := d.mounted("one"); !slices.Equal(got, []string{"/gpus/0"}) {
		t.Errorf("%v", got)
	}
	p = d.plan(two)
	if len(p.Holds) != 1 || !strings.Contains(p.Holds[0].Message, "Requested: 1, Available: 0") || len(given(p)) > 0 {
		t.Errorf("%+v", p.Holds)
	}
	next := d.plan(d.load(gpuPod("one", "i:2")))
	for i := range next.Steps {
		if s := &next.Steps[i]; s.Kind == plan.StartContainer && len(s.Needs.Of(plan.Create)) > 0 {
			t.Error("a container is created while another one uses its device")
		}
	}
	if err := d.converge(gpuPod("one", "i:2")); err != nil {
		t.Fatal(err)
	}
	if got := d.mounted("one"); !slices.Equal(got, []string{"/gpus/0"}) || len(given(next)) > 0 {
		t.Errorf("%v, %v", got, given(next))
	}
	if _, err := d.engine.Pods.Delete(t.Context(), model.RefOf(one.Pod), executor.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := d.converge(gpuPod("two", "i:1")); err != nil {
		t.Fatal(err)
	}
	if got := d.mounted("two"); !slices.Equal(got, []string{"/gpus/0"}) {
		t.Errorf("%v", got)
	}
}

// TestDevicesTakenMeanwhile: if another pod has got the planned device, podctl makes a new plan.
func TestDevicesTakenMeanwhile(t *testing.T) {
	d := newDeviceLab(t)
	p := &devicestest.Plugin{Answer: mounting}
	d.plug(p, devicestest.Healthy("0"), devicestest.Healthy("1"))
	one := d.load(gpuPod("one", "i:1"))
	taken := false
	_, err := d.engine.Pods.Apply(t.Context(), one, executor.Options{Planned: func(*plan.Plan) {
		if taken {
			return
		}
		taken = true
		if err := d.converge(gpuPod("two", "i:1")); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.mounted("one"); !slices.Equal(got, []string{"/gpus/1"}) {
		t.Errorf("%v", got)
	}
}

// TestFailedAllocation: a failed allocation starts nothing, and the next pass tries again. A new pod of the API server
// is rejected for good, as by a kubelet.
func TestFailedAllocation(t *testing.T) {
	d := newDeviceLab(t)
	failing := true
	d.plug(&devicestest.Plugin{Answer: mounting, Fail: func(call string) error {
		if failing && call == "Allocate" {
			return errors.New("no power")
		}
		return nil
	}}, devicestest.Healthy("0"))
	if _, err := d.once(gpuPod("one", "i:1")); err == nil || !strings.Contains(err.Error(), "no power") {
		t.Error(err)
	}
	if slices.Contains(d.server.Calls(), "RunPodSandbox") {
		t.Error("a sandbox was created")
	}
	c := d.fromAPI("three")
	pass := func() (*plan.Plan, error) {
		outcome, err := d.engine.Pods.Apply(t.Context(), c, executor.Options{Watched: true, ClusterPods: true})
		if err != nil {
			return nil, err
		}
		return outcome.Plan, outcome.Err()
	}
	if _, err := pass(); err == nil {
		t.Error("the allocation did not fail")
	}
	failing = false
	p, err := pass()
	if err != nil || p.Rejection == nil || p.Rejection.Reason != model.UnexpectedAdmissionError ||
		!strings.HasPrefix(p.Rejection.Message, "Allocate failed due to ") {
		t.Fatalf("%v, %+v", err, p)
	}
	pods, err := d.engine.List(t.Context(), []*podspec.Desired{c})
	if err != nil || pods[0].Status.Phase != v1.PodFailed || pods[0].Status.Reason != "UnexpectedAdmissionError" {
		t.Errorf("%v, %+v", err, pods)
	}
	if err = d.converge(gpuPod("one", "i:1")); err != nil {
		t.Error(err)
	}
}

// fromAPI returns a pod of the API server with one device.
func (d *deviceLab) fromAPI(name string) *podspec.Desired {
	d.t.Helper()
	if err := state.ClusterServices(d.layout).Write([]byte("{}")); err != nil {
		d.t.Fatal(err)
	}
	pod := d.load(gpuPod(name, "i:1")).Pod
	pod.UID = "7c2f4d9e-2f7a-4f0e-9d4b-000000000001"
	c := podspec.New(pod, podspec.OwnerAPI, pod.UID)
	c.Owner = podspec.OwnerAPI
	return c
}

// TestInterruptedAllocation: a pass that is cut short while the plugin is called does not reject its pod.
func TestInterruptedAllocation(t *testing.T) {
	d := newDeviceLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.plug(&devicestest.Plugin{Answer: mounting, Fail: func(call string) error {
		if call == "Allocate" {
			cancel()
		}
		return nil
	}}, devicestest.Healthy("0"))
	c := d.fromAPI("one")
	if o, err := d.engine.Pods.Apply(ctx, c, executor.Options{Watched: true, ClusterPods: true}); err == nil && o.Err() == nil {
		t.Error("the pass was not interrupted")
	}
	o, err := d.engine.Pods.Apply(t.Context(), c, executor.Options{Watched: true, ClusterPods: true})
	if err != nil || o.Err() != nil || o.Plan.Rejection != nil {
		t.Fatalf("%v, %+v", err, o)
	}
	if got := d.mounted("one"); len(got) == 0 && len(o.Plan.Steps) == 0 {
		t.Error("the pod does not start")
	}
}

// TestNoAgent: without an agent, a container that needs devices is held, and a running one stays.
func TestNoAgent(t *testing.T) {
	d := newDeviceLab(t)
	d.plug(&devicestest.Plugin{Answer: mounting}, devicestest.Healthy("0"))
	if err := d.converge(gpuPod("one", "i:1")); err != nil {
		t.Fatal(err)
	}
	d.engine.UseDevices(api.Client{Socket: d.layout.AgentSocket() + "x"})
	p := d.plan(d.load(gpuPod("one", "i:2")))
	if len(p.Holds) != 1 || !strings.Contains(p.Holds[0].Message, "no agent is running") || len(p.Keeps) != 3 {
		t.Errorf("%+v, %+v", p.Holds, p.Keeps)
	}
}
