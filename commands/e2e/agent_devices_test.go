//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podctl/podctl/runtime/devices/devicestest"
)

// devicePod asks for one device.
const devicePod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [log, --forever, --every, 1s]
    resources: {limits: {example.com/gpu: 1}}
`

// testAgentDevices: a pod waits for a device plugin, and then has its device, with what the plugin adds. It keeps the
// device when the agent and the plugin restart, and another pod gets it after that.
func testAgentDevices(t *testing.T, m *machine) {
	library := filepath.Join(t.TempDir(), "library")
	if err := os.WriteFile(library, []byte("driver 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, m, t.TempDir())
	a.put(t, "one.yaml", fmt.Sprintf(devicePod, "one"))
	held := func(name, text string) func() bool {
		return func() bool {
			p := a.podStatus(t, name)
			return p != nil && strings.Contains(strings.Join(p.Waiting, " "), text)
		}
	}
	until(t, "the pod waits for a plugin", held("one", "no device plugin has registered example.com/gpu"))
	newPlugin := func() *devicestest.Plugin {
		p := &devicestest.Plugin{Resource: "example.com/gpu", Answer: func(ids []string) *pluginapi.ContainerAllocateResponse {
			return &pluginapi.ContainerAllocateResponse{
				Envs:    map[string]string{"GPU": ids[0]},
				Devices: []*pluginapi.DeviceSpec{{HostPath: "/dev/null", ContainerPath: "/dev/gpu0", Permissions: "rw"}},
				Mounts:  []*pluginapi.Mount{{HostPath: library, ContainerPath: "/library", ReadOnly: true}},
			}
		}}
		socket := filepath.Join(m.state, "device-plugins", "kubelet.sock")
		if err := p.Start(t.Context(), socket, devicestest.Healthy("g7")); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := newPlugin()
	until(t, "the pod runs", func() bool { return m.isReady(t, "one") })
	inside := func(args ...string) string {
		return m.must(t, append([]string{"exec", "-q", "one", "--", "/demo"}, args...)...).stdout
	}
	if got := inside("print"); !strings.Contains(got, "GPU=g7\n") {
		t.Errorf("variables: %s", got)
	}
	if got := inside("read", "/library"); !strings.Contains(got, "driver 7") {
		t.Errorf("mount: %s", got)
	}
	inside("read", "/dev/gpu0")
	if got := m.must(t, "agent", "status").stdout; !strings.Contains(got, "default/one/app=g7") {
		t.Errorf("status:\n%s", got)
	}
	a.put(t, "two.yaml", fmt.Sprintf(devicePod, "two"))
	until(t, "another pod waits", held("two", "Requested: 1, Available: 0"))

	before, addresses := m.lives(t, []string{"one"})
	a.kill(t)
	p.Stop()
	a = startAgent(t, m, a.dir)
	until(t, "the plugin is missed", held("two", "has not registered since the agent started"))
	p = newPlugin()
	defer p.Stop()
	m.wantLives(t, "the agent and the plugin restarted", []string{"one"}, before, addresses)
	a.remove(t, "one.yaml")
	until(t, "the other pod runs", func() bool { return m.isReady(t, "two") })
	if uses := a.status(t).Devices[0].Uses; len(uses) != 1 || uses[0].IDs[0] != "g7" {
		t.Errorf("%v", uses)
	}
	a.remove(t, "two.yaml")
	until(t, "all pods are gone", func() bool { return len(a.status(t).Pods) == 0 })
	a.stop(t)
}
