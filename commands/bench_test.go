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
	m.must(b, "apply", "--wait", path)
	for _, verb := range []string{"plan", "apply", "get"} {
		b.Run(verb+"-unchanged", func(b *testing.B) {
			for b.Loop() {
				m.must(b, verb, path)
			}
		})
	}
}

// floorOne makes the bare calls: sandbox, its status, create, start.
func floorOne(b *testing.B, m *machine) {
	b.Helper()
	for b.Loop() {
		sandbox := floorStart(b, m)
		b.StopTimer()
		if _, err := m.cri.StopPodSandbox(b.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			b.Fatal(err)
		}
		if _, err := m.cri.RemovePodSandbox(b.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func floorStart(b *testing.B, m *machine) string {
	b.Helper()
	dir := filepath.Join(m.state, "floor")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "floor", Namespace: "default", Uid: time.Now().Format(time.RFC3339Nano)},
		LogDirectory: dir,
		Linux:        &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}}},
	}
	sandbox, err := m.cri.RunPodSandbox(b.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		b.Fatal(err)
	}
	if _, err = m.cri.PodSandboxStatus(b.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox.GetPodSandboxId()}); err != nil {
		b.Fatal(err)
	}
	created, err := m.cri.CreateContainer(b.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.GetPodSandboxId(), SandboxConfig: config, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "registry.local/podctl/demo:1"},
			Args: []string{"sleep"}, LogPath: "app.log", Linux: &runtimeapi.LinuxContainerConfig{},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err = m.cri.StartContainer(b.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()}); err != nil {
		b.Fatal(err)
	}
	return sandbox.GetPodSandboxId()
}
