package devices

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/devices/devicestest"
)

// TestChangedDevices: a container keeps its devices, also if the plugin does not report them any more, or is gone. If
// the agent restarts and the plugin then reports other devices, the container does not start.
func TestChangedDevices(t *testing.T) {
	m := newMachine(t)
	p := m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	if err := m.give(asks("p1", "x")); err != nil {
		t.Fatal(err)
	}
	more := asks("p1", "x")
	more.Containers[0].Amounts[gpu] = 2
	m.expect(more, map[string]string{"x": "changed from 1 to 2"})
	p.Set(devicestest.Healthy("b"))
	<-m.changed
	m.expect(asks("p1", "x"), map[string]string{"x": "a allocated"})
	m.expect(asks("p3", "x"), map[string]string{"x": "b"})

	m.stop()
	m.start()
	m.expect(asks("p1", "x"), map[string]string{"x": "has not registered since the agent started"})
	p = m.plug(&devicestest.Plugin{}, devicestest.Healthy("b"))
	m.expect(asks("p1", "x"), map[string]string{"x": `not reported since the agent started: ["a"]; delete the pod`})
	p.Set(devicestest.Healthy("b"), devicestest.Sick("a"))
	<-m.changed
	p.Set()
	<-m.changed
	m.expect(asks("p1", "x"), map[string]string{"x": "a allocated"})
	p.Stop()
	<-m.changed
	m.now = m.now.Add(gonePeriod + time.Second)
	m.expect(asks("p1", "x"), map[string]string{"x": "a allocated"})
	m.expect(asks("p3", "x"), map[string]string{"x": "no device plugin has registered"})
}

// TestSickDeviceOfInitContainer: a device that an init container has had is not given to another container while it is
// unhealthy.
func TestSickDeviceOfInitContainer(t *testing.T) {
	m := newMachine(t)
	p := m.plug(&devicestest.Plugin{}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	if err := m.give(asks("p1", "init:i")); err != nil {
		t.Fatal(err)
	}
	m.expect(asks("p1", "init:i", "x"), map[string]string{"i": "a allocated", "x": "a"})
	p.Set(devicestest.Sick("a"), devicestest.Healthy("b"))
	<-m.changed
	m.expect(asks("p1", "init:i", "x"), map[string]string{"i": "a allocated", "x": "b"})
}

// TestRegistrationDuringPreference: a plugin that registers again while it is asked for its preference is asked again.
func TestRegistrationDuringPreference(t *testing.T) {
	m := newMachine(t)
	asked := 0
	var p *devicestest.Plugin
	p = m.plug(&devicestest.Plugin{
		Options: &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true},
		Prefer:  func([]string) []string { return []string{"b"} },
		Fail: func(call string) error {
			if call != "GetPreferredAllocation" {
				return nil
			}
			if asked++; asked > 1 {
				return nil
			}
			return p.Register(t.Context(), m.socket)
		},
	}, devicestest.Healthy("a"), devicestest.Healthy("b"))
	m.expect(asks("p1", "x"), map[string]string{"x": "b"})
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestSilentPlugin: a plugin that has registered, but has not reported its devices, is named as the reason.
func TestSilentPlugin(t *testing.T) {
	m := newMachine(t)
	m.mu.Lock()
	m.resources[gpu] = &resource{plugin: &plugin{}}
	m.mu.Unlock()
	m.expect(asks("p1", "x"), map[string]string{"x": "has registered, but not reported its devices yet"})
}

// TestFilesOfKubelet: the file with which a kubelet prevents registrations is removed, and other files stay.
func TestFilesOfKubelet(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"DEPRECATION", "record"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveSockets(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "record" {
		t.Errorf("%v %v", left, err)
	}
}
