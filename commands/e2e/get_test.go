//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const listed = `apiVersion: v1
kind: Pod
metadata: {name: zebra, labels: {app: one}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    readinessProbe: {exec: {command: [/demo, check, file, /demo]}}
---
apiVersion: v1
kind: Pod
metadata: {name: ant, labels: {app: two}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [sleep]}
  - {name: side, image: "registry.local/podctl/demo:1", args: [exit, --after, 1s, "3"]}
`

// testGet: pods are selected, sorted and shown as in kubectl.
func testGet(t *testing.T, m *machine) {
	m.must(t, "apply", write(t, listed))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-l", "app=two", "-o", "name"}, "pod/ant\n"},
		{[]string{"-l", "app", "--sort-by", ".metadata.labels.app", "-o", "name"}, "pod/zebra\npod/ant\n"},
		{[]string{"zebra", "-o", "jsonpath={.metadata.labels.app}"}, "one"},
		{
			[]string{"-l", "app", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.phase},{end}`},
			"ant=Running,zebra=Running,",
		},
		{[]string{"zebra", "--no-headers"}, "zebra   0/1   Running"},
		{[]string{"zebra", "--probe", "--no-headers"}, "zebra   1/1   Running"},
		{[]string{"ant", "--containers"}, "ant   app         regular   Running"},
	} {
		if r := m.must(t, append([]string{"get"}, c.args...)...); !strings.Contains(r.stdout, c.want) {
			t.Errorf("get %s: %q is missing in\n%s", strings.Join(c.args, " "), c.want, r.stdout)
		}
	}
	if r := m.run(t, "get", "-o", "jsonpath={.a", "ant"); r.code != 1 || !strings.Contains(r.stderr, "jsonpath") {
		t.Errorf("a broken template: exit code %d\n%s", r.code, r.stderr)
	}
	testGetWatch(t, m)
	testGetForeign(t, m)
	m.must(t, "delete", "ant", "zebra")
}

// testGetWatch: a watch prints only changes, and ends with exit code 130.
func testGetWatch(t *testing.T, m *machine) {
	var out lockedBuffer
	lines := func() int { return strings.Count(out.String(), "pod/ant\n") }
	cmd := m.command(t.Context(), "get", "-w", "-o", "name", "-l", "app=two")
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod is printed", func() bool { return lines() > 0 })
	m.must(t, "apply", "--ignore-backoff", "ant")
	time.Sleep(2500 * time.Millisecond) // Without a change, nothing is printed.
	until(t, "a change is printed", func() bool { return lines() > 1 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("an interrupted watch exits with %d", cmd.ProcessState.ExitCode())
	}
	if lines() > 5 {
		t.Errorf("the watch showed:\n%s", out.String())
	}
}

// testGetForeign: pods without a checkpoint are listed with their manager.
func testGetForeign(t *testing.T, m *machine) {
	pods, aside := filepath.Join(m.state, "pods"), filepath.Join(m.state, "aside")
	if err := os.Rename(pods, aside); err != nil {
		t.Fatal(err)
	}
	r := m.must(t, "get")
	if err := os.RemoveAll(pods); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, pods); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.stdout, "MANAGER") || !strings.Contains(r.stdout, "podctl (no checkpoint)") {
		t.Errorf("pods without a checkpoint:\n%s", r.stdout)
	}
	if r := m.must(t, "get"); strings.Contains(r.stdout, "MANAGER") {
		t.Errorf("pods of podctl's own:\n%s", r.stdout)
	}
	sandbox, err := m.cri.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "theirs", Namespace: "kube-system", Uid: "u-1"},
		Labels: map[string]string{
			"io.kubernetes.pod.name":      "theirs",
			"io.kubernetes.pod.namespace": "kube-system",
			"io.kubernetes.pod.uid":       "u-1",
			"tier":                        "node",
		},
		Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: m.cgroupParent(t)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r := m.must(t, "get", "-A", "-l", "tier=node"); !strings.Contains(squeezed(r.stdout), "kube-system theirs") ||
		!strings.HasSuffix(r.stdout, "kubelet\n") {
		t.Errorf("a kubelet's pod:\n%s", r.stdout)
	}
	if r := m.run(t, "delete", "kube-system/theirs"); r.code != 1 ||
		!strings.Contains(r.stderr, "no pod kube-system/theirs") {
		t.Errorf("deleting a kubelet's pod: exit code %d\n%s", r.code, r.stderr)
	}
	remove := &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox.GetPodSandboxId()}
	if _, err := m.cri.RemovePodSandbox(t.Context(), remove); err != nil {
		t.Fatal(err)
	}
}

const restartable = `apiVersion: v1
kind: Pod
metadata: {name: again}
spec:
  terminationGracePeriodSeconds: 2
  initContainers:
  - {name: seed, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  - {name: side, image: "registry.local/podctl/demo:1", restartPolicy: Always, args: [sleep]}
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [sleep]}
  - {name: other, image: "registry.local/podctl/demo:1", args: [sleep]}
`

// testRestart: only the named containers are restarted.
func testRestart(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, restartable))
	before, sandbox := m.ids(t, "again"), m.readySandbox(t, "again")
	if r := m.must(t, "restart", "--dry-run", "again", "app"); !strings.Contains(r.stdout, "a restart was requested") {
		t.Errorf("restart --dry-run:\n%s", r.stdout)
	}
	m.must(t, "restart", "again", "app")
	after := m.ids(t, "again")
	if after["app"] == before["app"] || after["other"] != before["other"] || after["side"] != before["side"] {
		t.Errorf("restart of app alone: before %v, after %v", before, after)
	}
	m.must(t, "restart", "--wait", "--timeout", "30s", "again")
	last := m.ids(t, "again")
	for name, id := range after {
		if last[name] == id || last[name] == "" {
			t.Errorf("restart of all: %s was %s and is %s", name, id, last[name])
		}
	}
	if m.readySandbox(t, "again") != sandbox || m.pod(t, "again").Status.InitContainerStatuses[0].RestartCount != 0 {
		t.Error("the sandbox or an init container was recreated")
	}
	if r := m.run(t, "restart", "again", "seed"); r.code != 1 || !strings.Contains(r.stderr, "runs once") {
		t.Errorf("restart of an init container: exit code %d\n%s", r.code, r.stderr)
	}
	m.must(t, "delete", "again")
}
