//go:build e2e

package commands_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const onePod = `apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  terminationGracePeriodSeconds: 2
  containers: [{name: app, image: "registry.local/podctl/demo:1", args: [sleep]}]
`

// BenchmarkWholeProcess times podctl as a user calls it, beside the same CRI
// calls made by hand over one connection: the floor under any tool.
func BenchmarkWholeProcess(b *testing.B) {
	m := newMachine(b)
	path := write(b, onePod)
	b.Run("version", func(b *testing.B) {
		for b.Loop() {
			m.must(b, "version", "--client")
		}
	})
	b.Run("apply-one", func(b *testing.B) {
		for b.Loop() {
			m.must(b, "apply", path)
			b.StopTimer()
			m.must(b, "delete", "--force", "one")
			b.StartTimer()
		}
	})
	b.Run("floor-one", func(b *testing.B) { floorOne(b, m) })
	b.Run("apply-wait-inits", func(b *testing.B) { applyInits(b, m) })
	b.Run("floor-inits", func(b *testing.B) { floorInits(b, m) })
	m.must(b, "apply", "--wait", path)
	for _, verb := range []string{"plan", "apply", "get"} {
		b.Run(verb+"-unchanged", func(b *testing.B) {
			for b.Loop() {
				m.must(b, verb, path)
			}
		})
	}
}

const initPod = `apiVersion: v1
kind: Pod
metadata: {name: inits}
spec:
  terminationGracePeriodSeconds: 2
  initContainers:
  - {name: i1, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  - {name: i2, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  - {name: i3, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  containers: [{name: app, image: "registry.local/podctl/demo:1", args: [sleep]}]
`

func applyInits(b *testing.B, m *machine) {
	b.Helper()
	path := write(b, initPod)
	for b.Loop() {
		m.must(b, "apply", "--wait", path)
		b.StopTimer()
		m.must(b, "delete", "--force", "inits")
		b.StartTimer()
	}
}

// floorInits runs three containers to their ends and starts a fourth. The end of
// each is seen as early as the runtime shows it.
func floorInits(b *testing.B, m *machine) {
	b.Helper()
	for b.Loop() {
		f := newFloor(b, m)
		for _, name := range []string{"i1", "i2", "i3"} {
			f.awaitExit(f.start(name, "exit", "0"))
		}
		f.start("app", "sleep")
		b.StopTimer()
		f.remove()
		b.StartTimer()
	}
}

// floorOne makes the bare calls: sandbox, its status, create, start.
func floorOne(b *testing.B, m *machine) {
	b.Helper()
	for b.Loop() {
		f := newFloor(b, m)
		f.start("app", "sleep")
		b.StopTimer()
		f.remove()
		b.StartTimer()
	}
}

// floor is one sandbox made by hand.
type floor struct {
	b       *testing.B
	m       *machine
	config  *runtimeapi.PodSandboxConfig
	sandbox string
}

func newFloor(b *testing.B, m *machine) *floor {
	b.Helper()
	dir := filepath.Join(m.state, "floor")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	f := &floor{b: b, m: m, config: &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "floor", Namespace: "default", Uid: time.Now().Format(time.RFC3339Nano)},
		LogDirectory: dir,
		Linux:        &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}}},
	}}
	sandbox, err := m.cri.RunPodSandbox(b.Context(), &runtimeapi.RunPodSandboxRequest{Config: f.config})
	f.check(err)
	f.sandbox = sandbox.GetPodSandboxId()
	_, err = m.cri.PodSandboxStatus(b.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: f.sandbox})
	f.check(err)
	return f
}

func (f *floor) check(err error) {
	f.b.Helper()
	if err != nil {
		f.b.Fatal(err)
	}
}

func (f *floor) start(name string, args ...string) string {
	f.b.Helper()
	created, err := f.m.cri.CreateContainer(f.b.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: f.sandbox, SandboxConfig: f.config, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "registry.local/podctl/demo:1"},
			Args: args, LogPath: name + ".log", Linux: &runtimeapi.LinuxContainerConfig{},
		},
	})
	f.check(err)
	_, err = f.m.cri.StartContainer(f.b.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	f.check(err)
	return created.GetContainerId()
}

func (f *floor) awaitExit(id string) {
	f.b.Helper()
	for {
		status, err := f.m.cri.ContainerStatus(f.b.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
		f.check(err)
		if status.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (f *floor) remove() {
	f.b.Helper()
	_, err := f.m.cri.StopPodSandbox(f.b.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: f.sandbox})
	f.check(err)
	_, err = f.m.cri.RemovePodSandbox(f.b.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: f.sandbox})
	f.check(err)
}
