//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// byPod returns a request for the containers of a pod.
func byPod(name string) *runtimeapi.ListContainersRequest {
	return &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": name},
	}}
}

func removeContainer(t *testing.T, m *machine, id string) {
	t.Helper()
	if _, err := m.cri.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
}

// copyOf creates a copy of a pod's container that ends at once.
func copyOf(t *testing.T, m *machine, podName string, attempt uint32, annotations map[string]string) string {
	t.Helper()
	sandbox := m.readySandbox(t, podName)
	pod := m.pod(t, podName)
	labels := map[string]string{
		"io.kubernetes.pod.name": podName, "io.kubernetes.pod.namespace": "default",
		"io.kubernetes.pod.uid": string(pod.UID), "io.kubernetes.container.name": "a",
	}
	reply, err := m.cri.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "a", Attempt: attempt},
			Image:    &runtimeapi.ImageSpec{Image: "registry.local/podctl/demo:1"},
			Args:     []string{"exit", "0"}, Labels: labels, Annotations: annotations,
		},
		SandboxConfig: &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: podName, Namespace: "default", Uid: string(pod.UID)},
			Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: m.cgroupParent(t)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.cri.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: reply.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		status, err := m.cri.ContainerStatus(t.Context(),
			&runtimeapi.ContainerStatusRequest{ContainerId: reply.GetContainerId()})
		return err == nil && status.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	return reply.GetContainerId()
}

// records returns the IDs of all containers of a pod.
func (m *machine) records(t *testing.T, podName string) []string {
	t.Helper()
	reply, err := m.cri.ListContainers(t.Context(), byPod(podName))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range reply.GetContainers() {
		ids = append(ids, c.GetId())
	}
	return ids
}

// testPrune: prune removes leftovers. It does not remove running containers, recorded ones, or those of other tools.
func testPrune(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, two))
	m.must(t, "prune")
	if r := m.must(t, "prune"); r.stdout != "" || !strings.Contains(r.stderr, "Nothing to remove") {
		t.Errorf("with nothing to remove:\n%s%s", r.stdout, r.stderr)
	}
	m.must(t, "delete", "two")
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, two))
	short := write(t, strings.Replace(two, "name: two", "name: short", 1))
	m.must(t, "apply", "--wait", "--timeout", "30s", short)
	m.must(t, "delete", "short")
	before := m.ids(t, "two")
	own := map[string]string{"io.podctl.container.spec-hash": "v1:x"}
	foreign := copyOf(t, m, "two", 3, nil)
	older := copyOf(t, m, "two", 4, own)
	newest := copyOf(t, m, "two", 5, own)
	lost := testPruneLost(t, m)
	pods := filepath.Join(m.state, "pods")
	gone := filepath.Join(pods, "11111111-2222-3333-4444-555555555555", "volumes", "kubernetes.io~empty-dir", "v")
	if err := os.MkdirAll(gone, 0o750); err != nil {
		t.Fatal(err)
	}
	r := m.must(t, "prune", "--dry-run")
	for _, want := range []string{
		"container a, attempt 4", "default/lost", "11111111-2222-3333-4444-555555555555", "logs", "events",
		"Would remove ",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("prune --dry-run: %q is missing in\n%s", want, r.stdout)
		}
	}
	if ids := m.records(t, "two"); !slices.Contains(ids, older) {
		t.Error("a dry run removed something")
	}
	planned := garbageOf(t, m.must(t, "prune", "--dry-run", "-o", "json").stdout)
	if did := garbageOf(t, m.must(t, "prune", "-o", "json").stdout); !slices.Equal(planned, did) {
		t.Errorf("the dry run listed %v, removed %v", planned, did)
	}
	if ids := m.records(t, "two"); slices.Contains(ids, older) || !slices.Contains(ids, newest) ||
		!slices.Contains(ids, foreign) {
		t.Errorf("left %v: want %s removed, %s and %s kept", ids, older, newest, foreign)
	}
	if !sameMap(before, m.ids(t, "two")) {
		t.Error("a running container was changed")
	}
	if r := m.must(t, "events"); strings.Contains(r.stdout, "pod/short") || !strings.Contains(r.stdout, "pod/two") {
		t.Errorf("events after the prune:\n%s", r.stdout)
	}
	for _, path := range []string{filepath.Dir(filepath.Dir(filepath.Dir(gone))), lost} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	if left := m.sandboxes(t, "lost", runtimeapi.PodSandboxState_SANDBOX_READY); len(left) > 0 {
		t.Errorf("sandboxes without a checkpoint: %v", left)
	}
	testPruneKeeps(t, m)
	m.must(t, "delete", "two")
}

// garbageOf returns the items in a document of prune.
func garbageOf(t *testing.T, text string) []string {
	t.Helper()
	var doc struct {
		Kind  string
		Items []struct{ Kind, ID, Path string }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Kind != "GarbageList" {
		t.Fatalf("%v\n%s", err, text)
	}
	var found []string
	for _, one := range doc.Items {
		found = append(found, one.Kind+one.ID+one.Path)
	}
	return found
}

// testPruneLost creates an ended pod whose checkpoint is lost. It returns the pod's log directory.
func testPruneLost(t *testing.T, m *machine) string {
	t.Helper()
	m.must(t, "apply", "--wait=completed", "--timeout", "30s", write(t, `apiVersion: v1
kind: Pod
metadata: {name: lost, uid: lost-uid}
spec:
  restartPolicy: Never
  containers: [{name: app, image: "registry.local/podctl/demo:1", args: [exit, "0"]}]
`))
	if err := os.Remove(filepath.Join(m.state, "pods", "lost-uid", "checkpoint.json")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(m.logs, "default_lost_lost-uid")
}

// testPruneKeeps: prune does not touch a running pod with a lost checkpoint, or a sandbox of another tool.
func testPruneKeeps(t *testing.T, m *machine) {
	t.Helper()
	reply, err := m.cri.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "theirs", Namespace: "default", Uid: "their-uid"},
		Labels:   map[string]string{"io.kubernetes.pod.name": "theirs", "io.kubernetes.pod.uid": "their-uid"},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: m.cgroupParent(t)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := m.ids(t, "two")
	pods, aside := filepath.Join(m.state, "pods"), filepath.Join(m.state, "aside")
	if err := os.Rename(pods, aside); err != nil {
		t.Fatal(err)
	}
	r := m.must(t, "prune")
	if err := os.RemoveAll(pods); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, pods); err != nil {
		t.Fatal(err)
	}
	if !sameMap(before, m.ids(t, "two")) ||
		len(m.sandboxes(t, "theirs", runtimeapi.PodSandboxState_SANDBOX_READY)) != 1 {
		t.Errorf("a running or unmanaged object was removed:\n%s", r.stdout)
	}
	if _, err := m.cri.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: reply.GetPodSandboxId()}); err != nil {
		t.Error(err)
	}
	if m.must(t, "prune"); len(m.sandboxes(t, "theirs", runtimeapi.PodSandboxState_SANDBOX_NOTREADY)) != 1 {
		t.Error("an unmanaged sandbox was removed after it had ended")
	}
	remove := &runtimeapi.RemovePodSandboxRequest{PodSandboxId: reply.GetPodSandboxId()}
	if _, err := m.cri.RemovePodSandbox(t.Context(), remove); err != nil {
		t.Error(err)
	}
}
