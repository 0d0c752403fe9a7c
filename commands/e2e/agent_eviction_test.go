//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/cgroup"
	nodemachine "github.com/podctl/podctl/runtime/machine"
)

const greedyPod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 30
  volumes: [{name: v, emptyDir: {}}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: v, mountPath: /v}]
`

// testAgentEviction: the agent evicts the pod that fills a small disk, and no other pod, and removes its volume. It
// remains evicted for the next agent and for apply. Meanwhile no pod is admitted. A restart recreates the pod.
func testAgentEviction(t *testing.T, m *machine) {
	smallDisk(t, filepath.Join(m.state, "pods"))
	flag := []string{"--eviction-hard", "nodefs.available<6Mi"}
	a := startAgent(t, m, t.TempDir(), flag...)
	a.put(t, "greedy.yaml", fmt.Sprintf(greedyPod, "greedy"))
	a.put(t, "modest.yaml", fmt.Sprintf(greedyPod, "modest"))
	until(t, "both run", func() bool { return m.isReady(t, "greedy") && m.isReady(t, "modest") })
	modest := m.ids(t, "modest")
	volumes := filepath.Join(m.state, "pods", "*", "volumes", "kubernetes.io~empty-dir", "v")
	fill := func(pod string, size int) {
		uid := strings.TrimSpace(m.must(t, "get", pod, "-o", "jsonpath={.metadata.uid}").stdout)
		if err := os.WriteFile(filepath.Join(strings.Replace(volumes, "*", uid, 1), "file"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status := func(pod string) string {
		return m.must(t, "get", pod, "-o", "jsonpath={.status.phase} {.status.reason} {.status.message}").stdout
	}
	fill("modest", 1<<20)
	fill("greedy", 11<<20)
	until(t, "greedy is evicted", func() bool { return strings.HasPrefix(status("greedy"), "Failed Evicted") })
	const message = "Failed Evicted The node was low on resource: ephemeral-storage. Threshold quantity: 6Mi, available: "
	if got := status("greedy"); !strings.HasPrefix(got, message) {
		t.Errorf("status %s", got)
	}
	until(t, "its files and containers are gone", func() bool {
		left, err := filepath.Glob(volumes)
		return err == nil && len(left) == 1 && len(m.records(t, "greedy")) == 0
	})
	a.kill(t)

	a = startAgent(t, m, a.dir, flag...)
	fill("modest", 11<<20)
	until(t, "modest is evicted by the next agent",
		func() bool { return strings.HasPrefix(status("modest"), "Failed Evicted") })
	a.put(t, "late.yaml", fmt.Sprintf(greedyPod, "late"))
	until(t, "a new pod is rejected", func() bool {
		return strings.HasPrefix(m.run(t, "get", "late", "-o", "jsonpath={.status.reason} {.status.message}").stdout,
			"Evicted Pod was rejected: The node had condition: [DiskPressure].")
	})
	if got := status("greedy"); !strings.HasPrefix(got, message) {
		t.Errorf("with the next agent: status %s", got)
	}
	if r := m.run(t, "agent", "status"); !strings.Contains(r.stdout, "DiskPressure") ||
		!strings.Contains(r.stdout, "podctl restart default/greedy") {
		t.Errorf("agent status: %s", r.stdout)
	}
	if r := m.run(t, "apply", filepath.Join(a.dir, "greedy.yaml")); !strings.Contains(r.stdout+r.stderr, "Evicted") ||
		m.isReady(t, "greedy") {
		t.Errorf("apply: exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	until(t, "there is one event of the eviction",
		func() bool { return strings.Count(m.must(t, "events", "modest").stdout, "Evicted") == 1 })
	m.must(t, "restart", "greedy")
	until(t, "it runs again", func() bool { return m.isReady(t, "greedy") })
	if log := a.log.String(); strings.Count(log, "pod evicted") != 1 || !strings.Contains(log, "EvictionThresholdMet") {
		t.Errorf("the agent's log:\n%s", log)
	}
	if now := m.ids(t, "modest"); len(modest) == 0 || len(now) > 0 {
		t.Errorf("containers of modest: %v, before %v", now, modest)
	}
	a.remove(t, "greedy.yaml", "modest.yaml", "late.yaml")
	for _, name := range []string{"greedy", "modest", "late"} {
		until(t, name+" is gone", func() bool { return m.isGone(t, name) })
	}
	a.stop(t)
}

const eaterPod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 30
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep, --memory, "%d"]
`

// testAgentEvictionMemory: if the machine runs short of memory, the agent evicts the pod that uses most, and no other.
func testAgentEvictionMemory(t *testing.T, m *machine) {
	used, err := cgroup.WorkingSet()
	if err != nil {
		t.Fatal(err)
	}
	const mebibyte = 1 << 20
	left := (nodemachine.MemoryBytes() - used) / mebibyte
	a := startAgent(t, m, t.TempDir(), "--eviction-hard", fmt.Sprintf("memory.available<%dMi", left-500))
	a.put(t, "modest.yaml", fmt.Sprintf(eaterPod, "modest", 50))
	until(t, "modest runs", func() bool { return m.isReady(t, "modest") })
	modest := m.ids(t, "modest")
	a.put(t, "eater.yaml", fmt.Sprintf(eaterPod, "eater", 1000))
	status := func(pod string) string {
		return m.run(t, "get", pod, "-o", "jsonpath={.status.phase} {.status.reason} {.status.message}").stdout
	}
	until(t, "eater is evicted", func() bool { return strings.HasPrefix(status("eater"), "Failed Evicted") })
	want := fmt.Sprintf("Failed Evicted The node was low on resource: memory. Threshold quantity: %dMi, available: ",
		left-500)
	if got := status("eater"); !strings.HasPrefix(got, want) || !strings.Contains(got, "Container app was using ") {
		t.Errorf("status %s, want %s…", got, want)
	}
	until(t, "there is memory again", func() bool {
		return strings.Contains(a.log.String(), "EvictionThresholdMet") && len(m.records(t, "eater")) == 0
	})
	if now := m.ids(t, "modest"); len(now) != 1 || !sameMap(now, modest) {
		t.Errorf("containers of modest: %v, before %v", now, modest)
	}
	a.remove(t, "modest.yaml", "eater.yaml")
	for _, name := range []string{"modest", "eater"} {
		until(t, name+" is gone", func() bool { return m.isGone(t, name) })
	}
	a.stop(t)
}

// limitedPod has a sizeLimit, and two containers whose limits of ephemeral storage differ.
const limitedPod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 30
  volumes: [{name: v, emptyDir: {sizeLimit: 2Mi}}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: v, mountPath: /v}]
    resources: {limits: {ephemeral-storage: 4Mi}}
  - name: other
    image: registry.local/podctl/demo:1
    args: [sleep]
    resources: {limits: {ephemeral-storage: 4Mi}}
`

// testAgentEvictionLimits: without thresholds the agent evicts the pods that exceed a sizeLimit, a limit of a container
// or the sum of these limits, with the kubelet's messages. It does not matter where a pod comes from. A pod within its
// limits stays.
func testAgentEvictionLimits(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir(), "--eviction-hard", "")
	file := filepath.Join(t.TempDir(), "file")
	fill := func(pod, container, path string, kibibytes int) {
		t.Helper()
		if err := os.WriteFile(file, make([]byte, kibibytes<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		m.must(t, "cp", file, pod+":"+path, "-c", container)
	}
	manifest := filepath.Join(t.TempDir(), "layer.yaml")
	if err := os.WriteFile(manifest, fmt.Appendf(nil, limitedPod, "layer"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.must(t, "apply", manifest)
	files := []string{"volume", "sum", "modest"}
	for _, name := range files {
		a.put(t, name+".yaml", fmt.Sprintf(limitedPod, name))
	}
	for _, name := range append(files, "layer") {
		until(t, name+" runs", func() bool { return m.isReady(t, name) })
	}
	modest := m.ids(t, "modest")
	fill("modest", "app", "/v/file", 1000)
	fill("modest", "app", "/file", 3000)
	fill("modest", "other", "/file", 2000)
	fill("volume", "app", "/v/file", 3000)
	fill("layer", "other", "/file", 5000)
	fill("sum", "app", "/v/file", 1900)
	fill("sum", "app", "/file", 3900)
	fill("sum", "other", "/file", 3900)
	for name, want := range map[string]string{
		"volume": `Usage of EmptyDir volume "v" exceeds the limit "2Mi". `,
		"layer":  `Container other exceeded its local ephemeral storage limit "4Mi". `,
		"sum":    `Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. `,
	} {
		status := func() string {
			return m.must(t, "get", name, "-o", "jsonpath={.status.phase} {.status.reason} {.status.message}").stdout
		}
		until(t, name+" is evicted", func() bool { return strings.HasPrefix(status(), "Failed Evicted") })
		if got := status(); strings.TrimSpace(got) != strings.TrimSpace("Failed Evicted "+want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		until(t, name+" is gone from the runtime", func() bool { return len(m.records(t, name)) == 0 })
		for _, command := range []string{"plan", "describe", "events"} {
			// The pass writes its events at its end.
			until(t, command+" explains the end of "+name, func() bool {
				return strings.Contains(m.run(t, command, name).stdout, strings.TrimSuffix(want, ". "))
			})
		}
		conditions := m.must(t, "get", name, "-o", "jsonpath={.status.conditions[*].type}").stdout
		if strings.Contains(conditions, "DisruptionTarget") {
			t.Errorf("%s: conditions %s", name, conditions)
		}
	}
	if r := m.run(t, "apply", manifest); !strings.Contains(r.stdout+r.stderr, "Evicted") || m.isReady(t, "layer") {
		t.Errorf("apply: exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if now := m.ids(t, "modest"); len(now) != 2 || !sameMap(now, modest) {
		t.Errorf("containers of modest: %v, before %v", now, modest)
	}
	a.remove(t, "volume.yaml", "sum.yaml", "modest.yaml")
	m.must(t, "delete", "layer")
	for _, name := range append(files, "layer") {
		until(t, name+" is gone", func() bool { return m.isGone(t, name) })
	}
	a.stop(t)
}
