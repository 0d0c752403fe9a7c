//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/agent/api"
)

// agentProcess is a running `podctl agent`.
type agentProcess struct {
	m   *machine
	cmd *exec.Cmd
	dir string
	// log has the lines of its log.
	log lockedBuffer
}

// startAgent starts an agent for a directory, or for the sources in its configuration. The agent stops at the latest at
// the end of the test. It evicts no pods unless args enable that, because the machine of the tests may have a full
// disk.
func startAgent(t *testing.T, m *machine, dir string, args ...string) *agentProcess {
	t.Helper()
	a := launchAgent(t, m, dir, args...)
	waitFor(t, func() bool { return m.run(t, "agent", "status").code == 0 })
	return a
}

// launchAgent starts an agent like startAgent, but does not wait until it answers.
func launchAgent(t *testing.T, m *machine, dir string, args ...string) *agentProcess {
	t.Helper()
	a := &agentProcess{m: m, dir: dir}
	if dir != "" {
		args = append(args, dir)
	}
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--eviction") }) {
		args = append([]string{"--eviction=false"}, args...)
	}
	a.cmd = m.command(t.Context(), append([]string{"agent"}, args...)...)
	a.cmd.Stderr = &a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if a.cmd.ProcessState == nil {
			_ = a.cmd.Process.Kill()
			_ = a.cmd.Wait()
		}
		if t.Failed() {
			lines := strings.SplitAfter(a.log.String(), "\n")
			t.Logf("the end of the agent's log:\n%s", strings.Join(lines[max(0, len(lines)-200):], ""))
		}
	})
	return a
}

// kill kills the agent with SIGKILL.
func (a *agentProcess) kill(t *testing.T) {
	t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait()
}

// stop stops the agent as systemd does. The agent must stop soon and without an error.
func (a *agentProcess) stop(t *testing.T) {
	t.Helper()
	began := time.Now()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	if took := time.Since(began); took > patient(5*time.Second) {
		t.Errorf("the agent took %s to end", took)
	}
}

func (a *agentProcess) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *agentProcess) status(t *testing.T) *api.Status {
	t.Helper()
	var s api.Status
	if err := json.Unmarshal([]byte(a.m.must(t, "agent", "status", "-o", "json").stdout), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// isReady reports whether a pod exists and is ready.
func (m *machine) isReady(t *testing.T, name string) bool {
	t.Helper()
	return m.ready(t, name).Status == v1.ConditionTrue
}

// readySince waits until the agent has observed that a pod is ready, and returns since when it is ready.
func (m *machine) readySince(t *testing.T, name string) (since time.Time) {
	t.Helper()
	until(t, name+" is seen to be ready", func() bool {
		since = m.ready(t, name).LastTransitionTime.Time
		return !since.IsZero()
	})
	return since
}

// ready returns the condition Ready of a pod. It is empty if the pod does not exist.
func (m *machine) ready(t *testing.T, name string) v1.PodCondition {
	t.Helper()
	r := m.run(t, "get", "-o", "json", name)
	var pod v1.Pod
	if r.code != 0 || json.Unmarshal([]byte(r.stdout), &pod) != nil {
		return v1.PodCondition{}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c
		}
	}
	return v1.PodCondition{}
}

// runsAnother reports whether a container runs with another ID, and the one with this ID does not.
func (m *machine) runsAnother(t *testing.T, pod, container, id string) bool {
	t.Helper()
	reply, err := m.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.container.name": container},
		State:         &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	return err == nil && len(reply.GetContainers()) == 1 && reply.GetContainers()[0].GetId() != id
}

func (m *machine) isGone(t *testing.T, name string) bool {
	t.Helper()
	reply, err := m.cri.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": name},
	}})
	return err == nil && len(reply.GetItems()) == 0
}

const simplePod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [log, --forever, --every, %s]
`

// testAgent: the agent creates, changes and deletes pods according to the files of its directory. It restarts
// containers that end, and may be killed at any time.
func testAgent(t *testing.T, m *machine) {
	text, err := os.ReadFile(hello)
	if err != nil {
		t.Fatal(err)
	}
	m.run(t, "delete", "hello") // Another test may have left it.
	port := freePort(t)
	a := startAgent(t, m, t.TempDir(), "--listen", port)
	a.put(t, "hello.yaml", string(text))
	until(t, "hello is ready", func() bool { return m.isReady(t, "hello") })
	ids := m.ids(t, "hello")
	for _, line := range []string{
		`kubelet_desired_pods{static="true"} 1`, "kubelet_running_pods 1", "kubelet_started_pods_total 1",
		"kubelet_pod_start_duration_seconds_count 1",
	} {
		if page := read(t, "http://"+port+"/metrics"); !strings.Contains(page, line+"\n") {
			t.Errorf("the metrics have no %s:\n%s", line, page)
		}
	}
	ready := m.readySince(t, "hello")
	if age := time.Since(ready); age < 0 || age > patient(time.Minute) {
		t.Errorf("hello is ready since %s", ready)
	}
	if r := m.run(t, "probe", "--no-record", "hello"); !strings.Contains(r.stdout, "Success for ") {
		t.Errorf("probe does not show the results of the agent:\n%s", r.stdout)
	}

	if r := m.run(t, "agent", a.dir); r.code != 1 ||
		!strings.Contains(r.stderr, fmt.Sprintf("pid %d", a.cmd.Process.Pid)) {
		t.Errorf("a second agent: exit code %d, %s", r.code, r.stderr)
	}
	a.kill(t)
	a = startAgent(t, m, a.dir)
	until(t, "the agent is ready again", func() bool { return a.status(t).Ready })
	if after := m.ids(t, "hello"); !sameMap(ids, after) {
		t.Errorf("after the agent was killed: %v, before %v", after, ids)
	}
	if after := m.readySince(t, "hello"); !after.Equal(ready) {
		t.Errorf("after the agent was killed, hello is ready since %s, before since %s", after, ready)
	}

	a.put(t, "hello.yaml", strings.Replace(string(text), "--every, 5s", "--every, 6s", 1))
	until(t, "the worker is replaced", func() bool { return m.runsAnother(t, "hello", "worker", ids["worker"]) })
	if now := m.ids(t, "hello"); now["web"] != ids["web"] {
		t.Error("an edit of worker restarted web")
	}
	testAgentRestarts(t, m)

	if err := os.Rename(filepath.Join(a.dir, "hello.yaml"), filepath.Join(a.dir, "other.yaml")); err != nil {
		t.Fatal(err)
	}
	a.put(t, "bad.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: nonsense}\n")
	ids = m.ids(t, "hello")
	until(t, "the bad file is reported", func() bool {
		return strings.Contains(m.must(t, "agent", "status").stdout, "bad.yaml")
	})
	time.Sleep(patient(3 * time.Second))
	if now := m.ids(t, "hello"); !sameMap(ids, now) {
		t.Errorf("after a file was renamed: %v, before %v", now, ids)
	}
	if err := os.Remove(filepath.Join(a.dir, "other.yaml")); err != nil {
		t.Fatal(err)
	}
	until(t, "hello is gone", func() bool { return m.isGone(t, "hello") })
	a.stop(t)
}

// freePort returns an unused address of this machine.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it only held the port
	return l.Addr().String()
}

// read returns the response body of a URL.
func read(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testAgentRestarts: a container that ends is restarted, and the restart is counted.
func testAgentRestarts(t *testing.T, m *machine) {
	id := m.ids(t, "hello")["worker"]
	if _, err := m.cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	until(t, "the worker runs again", func() bool { return m.runsAnother(t, "hello", "worker", id) })
}

// testAgentBeside: users and the agent work on the same pods. The agent keeps pods that a user applied by hand, until
// they are deleted. A deleted pod of a source comes back, and is deleted with its file, even if no agent runs at that
// time. The kubelet's case is in test/e2e_node/unknown_pods_test.go: "the static pod should be terminated and cleaned
// up due to becoming a unknown pod due to being force deleted while kubelet is not running". The other case there needs
// a pod of the API server and does not apply.
func testAgentBeside(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir())
	a.put(t, "one.yaml", fmt.Sprintf(simplePod, "one", "5s"))
	until(t, "one runs", func() bool { return m.isReady(t, "one") })
	m.must(t, "apply", "--wait", "--timeout", "60s", write(t, fmt.Sprintf(simplePod, "two", "5s")))
	two := m.ids(t, "two")
	until(t, "two is known", func() bool { return len(a.status(t).Pods) == 2 })
	_, err := m.cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: two["app"]})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "two runs again", func() bool { return m.runsAnother(t, "two", "app", two["app"]) })

	one := m.ids(t, "one")
	file := filepath.Join(a.dir, "one.yaml")
	if r := m.must(t, "plan", write(t, fmt.Sprintf(simplePod, "one", "6s"))); !strings.Contains(r.stderr,
		"the agent applies this pod from "+file+" and reverts") {
		t.Errorf("a plan of another manifest does not mention the agent:\n%s", r.stderr)
	}
	r := m.must(t, "delete", "one", "two")
	if strings.Count(r.stderr, "note:") != 1 ||
		!strings.Contains(r.stderr, "the agent recreates pod default/one: its manifest is in "+file) {
		t.Errorf("the deletion of a pod that the agent recreates prints:\n%s", r.stderr)
	}
	until(t, "one comes back", func() bool { return m.runsAnother(t, "one", "app", one["app"]) })
	until(t, "the agent no longer lists two", func() bool { return len(a.status(t).Pods) == 1 })
	if !m.isGone(t, "two") {
		t.Error("a pod that was applied by hand came back after its deletion")
	}

	// No agent observes the removal of the file, but the next agent notices it.
	a.stop(t)
	if err := os.Remove(filepath.Join(a.dir, "one.yaml")); err != nil {
		t.Fatal(err)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", write(t, fmt.Sprintf(simplePod, "three", "5s")))
	a = startAgent(t, m, a.dir)
	until(t, "one is deleted", func() bool { return m.isGone(t, "one") && len(m.records(t, "one")) == 0 })
	if m.isGone(t, "three") {
		t.Error("a pod that was applied by hand was deleted")
	}
	a.stop(t)
	m.must(t, "delete", "three")
}

const configured = `apiVersion: v1
kind: Pod
metadata: {name: configured}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: first, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  - {name: second, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [serve, --http, ":8080"]
    env: [{name: WORD, valueFrom: {configMapKeyRef: {name: shared, key: word}}}]
`

// testAgentObjects: a pod with a missing ConfigMap starts when a user applies the ConfigMap. When its value changes,
// the containers that use it are replaced.
func testAgentObjects(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir())
	a.put(t, "pod.yaml", configured)
	until(t, "the pod is held", func() bool { return strings.Contains(m.must(t, "agent", "status").stdout, "shared") })
	configMap := func(word string) string {
		return write(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {word: "+word+"}\n")
	}
	m.must(t, "apply", configMap("one"))
	until(t, "the pod runs", func() bool { return m.isReady(t, "configured") })
	before := m.ids(t, "configured")
	m.must(t, "apply", configMap("two"))
	until(t, "the container is replaced", func() bool { return m.runsAnother(t, "configured", "app", before["app"]) })
	if err := os.Remove(filepath.Join(a.dir, "pod.yaml")); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod is gone", func() bool { return m.isGone(t, "configured") })
	a.stop(t)
	m.must(t, "delete", "configmap/shared")
}
