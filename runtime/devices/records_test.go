package devices

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/devices/devicestest"
	"github.com/podctl/podctl/runtime/model"
)

// use makes pods those that use resources of the node.
func (m *machine) use(pods ...string) {
	m.users = nil
	for _, p := range pods {
		m.users = append(m.users, model.Admitted{Pod: model.PodRef{UID: types.UID(p)}})
	}
}

// TestNewPodWithTheSameUID: a pod that exists again has none of the devices that its former self had. The uid of a pod
// from a file derives from its name.
func TestNewPodWithTheSameUID(t *testing.T) {
	m := newMachine(t)
	m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	m.Settle()
	if err := m.give(asks("p1", "x")); err != nil {
		t.Fatal(err)
	}
	again := asks("p1", "x")
	again.Containers[0].Amounts[gpu] = 2
	m.expect(again, map[string]string{"x": "the request for example.com/gpu changed"})
	m.use()
	m.expect(again, map[string]string{"x": "a,b"})
	m.use("p1")
	m.expect(again, map[string]string{"x": "a,b"})
	if err := m.give(again); err != nil {
		t.Fatal(err)
	}
	m.expect(again, map[string]string{"x": "a,b allocated"})
}

// TestKeptDevices: a container that does not request its devices any more keeps them until it has stopped. Then the
// others are notified.
func TestKeptDevices(t *testing.T) {
	m := newMachine(t)
	m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"))
	m.Settle()
	if err := m.give(asks("p1", "x")); err != nil {
		t.Fatal(err)
	}
	m.use("p1", "p2")
	runs := func(container string) bool { return container == "x" }
	m.Keep(t.Context(), asks("p1", "x"), func(string) bool { return false })
	m.expect(asks("p1", "x"), map[string]string{"x": "a allocated"})
	m.Keep(t.Context(), asks("p1", "y"), runs)
	m.expect(asks("p1", "y"), map[string]string{"y": "podctl waits"})
	m.expect(asks("p2", "x"), map[string]string{"x": "Requested: 1, Available: 0"})
	m.Keep(t.Context(), asks("p1", "y"), func(string) bool { return false })
	<-m.changed
	m.expect(asks("p1", "y"), map[string]string{"y": "a"})
	m.expect(asks("p2", "x"), map[string]string{"x": "a"})
	m.stop()
	m.start()
	m.usedBy()
}

// TestNewPodDuringAllocation: the record of a pod that was admitted while a plugin was called for another pod stays.
func TestNewPodDuringAllocation(t *testing.T) {
	m := newMachine(t)
	m.Settle()
	m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"))
	m.plug(&devicestest.Plugin{Resource: "example.com/fpga", Fail: func(call string) error {
		if call != "Allocate" {
			return nil
		}
		return m.give(asks("p2", "x"))
	}}, devicestest.Healthy("f"))
	both := asks("p1", "x")
	both.Containers[0].Amounts["example.com/fpga"] = 1
	m.users = []model.Admitted{{Pod: model.PodRef{UID: "p1"}}}
	chosen, err := m.ChooseDevices(t.Context(), both)
	if err != nil {
		t.Fatal(err)
	}
	err = m.AllocateDevices(t.Context(), "p1", "x", chosen.Unallocated("x"))
	if !errors.Is(err, model.ErrDevicesTaken) { // p2 has the only gpu.
		t.Error(err)
	}
	m.expect(asks("p2", "x"), map[string]string{"x": "a allocated"})
	if _, err = m.PrepareDevices(t.Context(), "p3", "x"); !errors.Is(err, model.ErrDevicesTaken) {
		t.Errorf("a container starts without its devices: %v", err)
	}
}

// TestInterruptedCalls: a call of a plugin that is interrupted does not reject a pod.
func TestInterruptedCalls(t *testing.T) {
	m := newMachine(t)
	whole := t.Context()
	ctx, cancel := context.WithCancel(whole)
	again := false
	var p *devicestest.Plugin
	p = m.plug(&devicestest.Plugin{
		Options: &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true},
		Prefer:  func(all []string) []string { return all },
		Fail: func(call string) error {
			switch {
			case call == "GetPreferredAllocation" && !again:
				cancel()
				<-ctx.Done()
			case call == "Allocate" && again:
				again = false
				return p.Register(whole, m.socket)
			}
			return nil
		},
	}, devicestest.Healthy("a"))
	if chosen, err := m.ChooseDevices(ctx, asks("p1", "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", chosen, err)
	}
	again = true
	if err := m.give(asks("p1", "x")); !errors.Is(err, model.ErrDevicesTaken) || !strings.Contains(err.Error(), "again") {
		t.Error(err)
	}
	if err := m.give(asks("p1", "x")); err != nil {
		t.Error(err)
	}
}
