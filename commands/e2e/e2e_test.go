//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// machine is a private containerd with the binary under test.
type machine struct {
	bin, state, logs string
	cri              runtimeapi.RuntimeServiceClient
}

// result is the result of one call of podctl.
type result struct {
	stdout, stderr string
	code           int
}

func need(tb testing.TB, name string) string {
	tb.Helper()
	value := os.Getenv(name)
	if value == "" {
		tb.Fatalf("%s is not set; run these tests by `make e2e`", name)
	}
	return value
}

// newMachine starts a node in a directory of its own. At the end of the test it stops the node and checks that nothing
// is left.
func newMachine(tb testing.TB) *machine {
	tb.Helper()
	state, err := os.MkdirTemp("/tmp", "podctl-e2e-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		tb.Fatal(err)
	}
	m := &machine{bin: need(tb, "PODCTL_BIN"), state: state, logs: filepath.Join(state, "logs")}
	images := need(tb, "PODCTL_IMAGES")
	tb.Cleanup(func() {
		m.must(tb, "node", "down")
		if removeErr := removeCgroups(m.cgroupRoot()); removeErr != nil {
			tb.Error(removeErr)
		}
		if left := mountsBelow(tb, state); left != "" {
			tb.Errorf("mounts are left: %s", left)
		}
		if removeErr := os.RemoveAll(state); removeErr != nil {
			tb.Error(removeErr)
		}
	})
	m.must(tb, "node", "up", "--containerd", need(tb, "PODCTL_CONTAINERD"),
		"--cgroup-driver", os.Getenv("PODCTL_TEST_CGROUP_DRIVER"),
		"--load", filepath.Join(images, "pause.tar"), "--load", filepath.Join(images, "demo.tar"))
	conn, err := grpc.NewClient("unix://"+m.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	m.cri = runtimeapi.NewRuntimeServiceClient(conn)
	return m
}

func mountsBelow(tb testing.TB, dir string) string {
	tb.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		tb.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[4], dir) {
			found = append(found, fields[4])
		}
	}
	return strings.Join(found, " ")
}

func (m *machine) socket() string { return filepath.Join(m.state, "node", "containerd.sock") }

// cgroupRoot returns a root of its own for each machine, which separates its pods from others with the same name.
func (m *machine) cgroupRoot() string { return filepath.Base(m.state) }

// cgroupParent returns the cgroup in the notation of the node's driver.
func (m *machine) cgroupParent(t *testing.T) string {
	t.Helper()
	var status node.Status
	if err := json.Unmarshal([]byte(m.must(t, "node", "status", "-o", "json").stdout), &status); err != nil {
		t.Fatal(err)
	}
	roots := cgroupRoots(m.cgroupRoot())
	if status.CgroupDriver == node.Systemd {
		return roots[1]
	}
	return roots[0]
}

func (m *machine) command(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"--state-dir", m.state, "--log-root", m.logs, "--cgroup-root", m.cgroupRoot()},
		patiently(args)...)
	cmd := exec.CommandContext(ctx, m.bin, args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

func (m *machine) run(tb testing.TB, args ...string) result {
	tb.Helper()
	return m.runWith(tb, m.command(tb.Context(), args...))
}

func (m *machine) runWith(tb testing.TB, cmd *exec.Cmd) result {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func (m *machine) must(tb testing.TB, args ...string) result {
	tb.Helper()
	cmd := m.command(context.Background(), args...)
	r := m.runWith(tb, cmd)
	if r.code != 0 {
		tb.Fatalf("podctl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// mustFail runs podctl, and fails the test unless the exit code reports a failed pod.
func (m *machine) mustFail(tb testing.TB, args ...string) result {
	tb.Helper()
	r := m.run(tb, args...)
	if r.code != exit.PodFailed {
		tb.Fatalf("podctl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// plan returns the output of `podctl plan -o json`.
func (m *machine) plan(t *testing.T, args ...string) *plan.Plan {
	t.Helper()
	r := m.must(t, append([]string{"plan", "-o", "json"}, args...)...)
	return onePlan(t, r.stdout)
}

// onePlan parses the plan of a single pod. The plan of a manifest with objects is a list.
func onePlan(t *testing.T, text string) *plan.Plan {
	t.Helper()
	var doc struct {
		plan.Plan
		Items []*plan.Plan `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Items) == 1 {
		return doc.Items[0]
	}
	return &doc.Plan
}

// killContainerd kills the node's containerd.
func killContainerd(t *testing.T, m *machine) {
	t.Helper()
	var status struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(m.must(t, "node", "status", "-o", "json").stdout), &status); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(status.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return m.run(t, "node", "status").code == 3 })
}

// pod returns the output of `podctl get -o json NAME`.
func (m *machine) pod(t *testing.T, name string) *v1.Pod {
	t.Helper()
	r := m.must(t, "get", "-o", "json", name)
	var pod v1.Pod
	if err := json.Unmarshal([]byte(r.stdout), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// ids maps the names of a pod's containers to the IDs of their running records. Two running records with one name are
// an error.
func (m *machine) ids(t *testing.T, podName string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for name, all := range m.allIDs(t, podName) {
		ids[name] = all[0]
		if len(all) > 1 {
			t.Errorf("container %s runs twice", name)
		}
	}
	return ids
}

// allIDs maps the names of a pod's containers to the IDs of their running records. There may be two for a moment,
// because a container is replaced when its last process has ended, and the runtime reports the end later.
func (m *machine) allIDs(t *testing.T, podName string) map[string][]string {
	t.Helper()
	reply, err := m.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": podName},
		State:         &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string][]string{}
	for _, c := range reply.GetContainers() {
		name := c.GetMetadata().GetName()
		ids[name] = append(ids[name], c.GetId())
	}
	return ids
}

// sandboxes returns the IDs of a pod's sandboxes in a state.
func (m *machine) sandboxes(t *testing.T, podName string, state runtimeapi.PodSandboxState) []string {
	t.Helper()
	reply, err := m.cri.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": podName},
		State:         &runtimeapi.PodSandboxStateValue{State: state},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range reply.GetItems() {
		ids = append(ids, s.GetId())
	}
	return ids
}

func (m *machine) readySandbox(t *testing.T, podName string) string {
	t.Helper()
	ids := m.sandboxes(t, podName, runtimeapi.PodSandboxState_SANDBOX_READY)
	if len(ids) != 1 {
		t.Fatalf("pod %s has %d ready sandboxes, want 1", podName, len(ids))
	}
	return ids[0]
}

// write writes a manifest to a temporary file and returns its path.
func write(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "pod.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// edited writes a copy of a manifest in which one text is replaced.
func edited(t *testing.T, path, before, after string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), before) {
		t.Fatalf("%s does not contain %q", path, before)
	}
	return write(t, strings.Replace(string(text), before, after, 1))
}

const hello = "../../docs/examples/hello.yaml"

func TestE2E(t *testing.T) {
	m := newMachine(t)
	for _, one := range []struct {
		name string
		test func(*testing.T, *machine)
	}{
		{"hello", testHello},
		{"plan writes nothing", testPlanWritesNothing},
		{"replace", testReplace},
		{"replacement starts early", testReplacementStartsEarly},
		{"sandbox edits", testSandboxEdit},
		{"removed container", testRemovedContainer},
		{"crash loop", testCrashLoop},
		{"completion", testCompletion},
		{"init failure", testInitFailure},
		{"liveness", testLiveness},
		{"missing reference", testMissingReference},
		{"missing image", testMissingImage},
		{"hooks and stop", testHooks},
		{"configuration update", testConfigUpdate},
		{"killed at any point", testKilled},
		{"interrupt", testInterrupt},
		{"bad input", testBadInput},
		{"examples", testExamples},
		{"pull", testPull},
		{"host port", testHostPort},
		{"delete", testDelete},
		{"delete thirty", testDeleteThirty},
		{"contract", testContract},
		{"snapshot", testSnapshot},
		{"saved plan", testSavedPlan},
		{"resize", testResize},
		{"limits of cgroup v2", testUnifiedLimits},
		{"out of memory", testOutOfMemory},
		{"AppArmor", testAppArmor},
		{"drift", testDrift},
		{"left processes", testLeftProcesses},
		{"termination message", testTerminationMessage},
		{"environment file", testEnvFile},
		{"host port conflict", testHostPortConflict},
		{"claim", testClaim},
		{"everything", testEverything},
		{"probe --wait", testProbeWait},
		{"run", testRun},
		{"get", testGet},
		{"objects", testObjects},
		{"workloads", testWorkloads},
		{"services", testServices},
		{"sets", testSets},
		{"exec", testExec},
		{"debug", testDebug},
		{"logs", testLogs},
		{"cp", testCopy},
		{"restart", testRestart},
		{"events", testEvents},
		{"attach", testAttach},
		{"port-forward", testPortForward},
		{"stops", testStops},
		{"deadline", testDeadline},
		{"wait", testWait},
		{"healthy containers stay", testHealthyContainersAreKept},
		{"image volume", testImageVolume},
		{"user namespaces", testUserNamespaces},
		{"recursive read-only", testRecursiveReadOnly},
		{"top", testTop},
		{"config", testConfig},
		{"doctor", testDoctor},
		{"doctor bundle", testDoctorBundle},
		{"images", testImages},
		{"image pull", testImagePull},
		{"prune", testPrune},
		{"takeover", testTakeover},
		{"live kubelet", testLiveKubelet},
		{"many at once", testManyAtOnce},
		{"a delete wins", testDeleteWins},
		{"stopped holder", testStoppedHolder},
		{"many pods", testManyPods},
		{"random faults", testRandomFaults},
		{"hostile surroundings", testHostile},
		{"runtime restart", testRuntimeRestart},
		{"secrets", testSecrets},
		{"modes", testModes},
		{"listeners", testListeners},
		{"bounded inputs", testBoundedInputs},
		{"escapes", testEscapes},
		{"foreign directories", testForeignDirectories},
		{"runtime restart at calls", testRuntimeRestartAtCalls},
		{"agent", testAgent},
		{"agent beside users", testAgentBeside},
		{"agent objects", testAgentObjects},
		{"agent workloads", testAgentWorkloads},
		{"agent services", testAgentServices},
		{"agent sources", testAgentSources},
		{"agent sources of its own", testAgentOwnSources},
		{"agent admission", testAgentAdmission},
		{"agent grace periods", testAgentGracePeriods},
		{"agent after restarts", testAgentAfterRestarts},
		{"agent devices", testAgentDevices},
		{"agent standalone", testAgentStandalone},
		{"agent reload", testAgentReload},
		{"agent restart signals", testAgentRestartSignals},
		{"agent stop pods", testAgentStopPods},
		{"agent idle", testAgentIdle},
		{"agent unrest", testAgentChaos},
		{"agent faults", testAgentFaults},
		{"agent soak", testAgentSoak},
		{"agent eviction", testAgentEviction},
		{"agent eviction of memory", testAgentEvictionMemory},
		{"agent eviction for limits", testAgentEvictionLimits},
		{"agent housekeeping", testHousekeeping},
		{"agent images", testAgentImages},
		{"node restart", testNodeRestart},
	} {
		t.Run(one.name, func(t *testing.T) {
			skipMeasured(t, one.name)
			// All tests use the same connection to the runtime.
			if _, err := m.cri.Version(t.Context(), &runtimeapi.VersionRequest{}); err != nil {
				t.Fatal(err)
			}
			runtimetest.CheckLeaks(t)
			m.clearAfterFailure(t)
			one.test(t, m)
		})
	}
}

// clearAfterFailure deletes what a failed test leaves, so that the tests after it start with an empty node.
func (m *machine) clearAfterFailure(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			m.must(t, "delete", "--all", "-A", "--force", "--volumes", "--timeout", "60s")
		}
	})
}

func testHello(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
	pod := m.pod(t, "hello")
	if pod.Status.Phase != v1.PodRunning || pod.Status.PodIP == "" || pod.Status.QOSClass != v1.PodQOSBestEffort {
		t.Errorf("status: phase %s, IP %q, QoS %s", pod.Status.Phase, pod.Status.PodIP, pod.Status.QOSClass)
	}
	before, sandbox := m.ids(t, "hello"), m.readySandbox(t, "hello")
	if p := m.plan(t, hello); !p.Complete || len(p.Steps) > 0 {
		t.Errorf("after apply --wait the plan has %d steps, complete is %t", len(p.Steps), p.Complete)
	}
	if r := m.run(t, "plan", "--exit-code", hello); r.code != 0 || !strings.Contains(r.stdout, "No changes") {
		t.Errorf("a second plan: exit code %d\n%s", r.code, r.stdout)
	}
	if r := m.must(t, "apply", hello); !strings.Contains(r.stdout, "unchanged") {
		t.Errorf("a second apply prints %q", r.stdout)
	}
	if after := m.ids(t, "hello"); !sameMap(before, after) || m.readySandbox(t, "hello") != sandbox {
		t.Error("applying the same file changed something")
	}
	if r := m.run(t, "probe", "hello"); r.code != 0 {
		t.Errorf("probe: exit code %d\n%s", r.code, r.stdout)
	}
	if r := m.must(t, "logs", "hello", "verify"); !strings.Contains(r.stdout, "Hello, demo!") ||
		!strings.Contains(r.stdout, "Hello from podctl") {
		t.Errorf("the init container's log: %q", r.stdout)
	}
}

func sameMap(a, b map[string]string) bool {
	return len(a) > 0 && fmt.Sprint(a) == fmt.Sprint(b)
}

func testPlanWritesNothing(t *testing.T, m *machine) {
	socket := filepath.Join(m.state, "proxy.sock")
	proxy, err := runtimetest.StartProxy(t.Context(), socket, m.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	other := edited(t, hello, "name: hello\n  labels:", "name: other\n  labels:")
	if r := m.must(t, "-r", socket, "plan", other); !strings.Contains(r.stdout, "2 to start") {
		t.Errorf("plan of a new pod:\n%s", r.stdout)
	}
	if writes := proxy.Writes(); len(writes) > 0 {
		t.Errorf("plan made write calls: %v", writes)
	}
	if len(proxy.Calls()) == 0 {
		t.Error("the proxy recorded no calls")
	}
}

func testReplace(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
	before, sandbox, ip := m.ids(t, "hello"), m.readySandbox(t, "hello"), m.pod(t, "hello").Status.PodIP
	changed := edited(t, hello, "--every, 5s", "--every, 6s")
	r := m.must(t, "plan", changed)
	if !strings.Contains(r.stdout, "-/+ worker") || !strings.Contains(r.stdout, "args[") ||
		!strings.Contains(r.stdout, "1 to replace") {
		t.Errorf("the plan does not show the replacement and its reason:\n%s", r.stdout)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", changed)
	after := m.ids(t, "hello")
	if after["web"] != before["web"] || after["worker"] == before["worker"] || after["worker"] == "" {
		t.Errorf("before %v, after %v: want only worker recreated", before, after)
	}
	if m.readySandbox(t, "hello") != sandbox || m.pod(t, "hello").Status.PodIP != ip {
		t.Error("the sandbox or its address changed")
	}
}

// testReplacementStartsEarly replaces a server that keeps listening for a while after the signal. The replacement needs
// the port, but does not need to wait until the runtime has cleaned up.
func testReplacementStartsEarly(t *testing.T, m *machine) {
	manifest := write(t, `apiVersion: v1
kind: Pod
metadata: {name: early}
spec:
  containers:
  - name: web
    image: registry.local/podctl/demo:1
    args: [serve, --http, ":8080", --drain, 200ms]
    env: [{name: ROUND, value: "0"}]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`)
	m.must(t, "apply", "--wait", "--timeout", "30s", manifest)
	overlaps := 0
	for round := 1; round <= 5; round++ {
		manifest = edited(t, manifest, fmt.Sprintf(`"%d"`, round-1), fmt.Sprintf(`"%d"`, round))
		r := m.must(t, "apply", "-o", "json", manifest)
		started, stopped := eventAt(t, r.stdout, "Started", "start-web"), eventAt(t, r.stdout, "Done", "stop-")
		if started < stopped {
			overlaps++
		}
		m.must(t, "apply", "--wait", "--timeout", "30s", manifest)
		if status := m.pod(t, "early").Status.ContainerStatuses[0]; status.RestartCount != int32(round) {
			t.Fatalf("round %d: the container was restarted %d times: %+v", round, status.RestartCount,
				status.LastTerminationState)
		}
	}
	if overlaps == 0 {
		t.Error("no start began before the runtime finished its clean-up")
	}
	m.must(t, "delete", "early")
}

// eventAt returns the index of the line with an event of a step.
func eventAt(t *testing.T, stream, kind, step string) int {
	t.Helper()
	for i, line := range slices.Collect(strings.Lines(stream)) {
		if strings.Contains(line, `"type":"`+kind+`"`) && strings.Contains(line, `"id":"`+step) {
			return i
		}
	}
	t.Fatalf("no event %s of %s:\n%s", kind, step, stream)
	return 0
}

func testSandboxEdit(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
	sandbox := m.readySandbox(t, "hello")
	changed := edited(t, hello, "spec:\n", "spec:\n  hostname: renamed\n")
	if r := m.must(t, "plan", changed); !strings.Contains(r.stdout, "-/+ sandbox") ||
		!strings.Contains(r.stdout, "hostname") {
		t.Errorf("the plan does not show that the sandbox is replaced:\n%s", r.stdout)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", changed)
	if m.readySandbox(t, "hello") == sandbox {
		t.Error("the sandbox was not replaced")
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
}

const two = `apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - {name: a, image: "registry.local/podctl/demo:1", args: [sleep]}
  - {name: b, image: "registry.local/podctl/demo:1", args: [sleep]}
`

func testRemovedContainer(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", write(t, two))
	before := m.ids(t, "two")
	one := write(t,
		strings.Replace(two, `  - {name: b, image: "registry.local/podctl/demo:1", args: [sleep]}`+"\n", "", 1))
	if r := m.must(t, "plan", one); !strings.Contains(r.stdout, "no longer in the manifest") {
		t.Errorf("the plan:\n%s", r.stdout)
	}
	m.must(t, "apply", one)
	if after := m.ids(t, "two"); after["a"] != before["a"] || after["b"] != "" {
		t.Errorf("before %v, after %v: want only b removed", before, after)
	}
	m.must(t, "delete", "two")
}

func testCrashLoop(t *testing.T, m *machine) {
	path := write(t, `apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [exit, "3"]}
`)
	m.must(t, "apply", path)
	waitFor(t, func() bool { return len(m.ids(t, "crash")) == 0 })
	m.must(t, "apply", path) // the first restart is not held
	waitFor(t, func() bool { return len(m.ids(t, "crash")) == 0 })
	r := m.run(t, "plan", "--exit-code", path)
	if r.code != 3 || !strings.Contains(r.stdout, "CrashLoopBackOff 10s, exit code 3") {
		t.Errorf("a crashed container: exit code %d\n%s", r.code, r.stdout)
	}
	if pod := m.pod(t, "crash"); pod.Status.ContainerStatuses[0].State.Waiting == nil ||
		pod.Status.ContainerStatuses[0].State.Waiting.Reason != "CrashLoopBackOff" {
		t.Errorf("status: %+v", pod.Status.ContainerStatuses[0].State)
	}
	if r := m.run(t, "plan", "--exit-code", "--ignore-backoff", path); r.code != 2 {
		t.Errorf("--ignore-backoff: exit code %d\n%s", r.code, r.stdout)
	}
	m.must(t, "delete", "crash")
}

func waitFor(tb testing.TB, done func() bool) {
	tb.Helper()
	until(tb, "what the test waits for", done)
}

// until waits for a condition. The time limit is longer on a slow machine.
func until(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(patient(30 * time.Second)); !done(); time.Sleep(patient(50 * time.Millisecond)) {
		if time.Now().After(deadline) {
			tb.Fatalf("not in time: %s", what)
		}
	}
}

func testCompletion(t *testing.T, m *machine) {
	path := write(t, `apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  restartPolicy: Never
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
`)
	m.must(t, "apply", "--wait=completed", "--timeout", "30s", path)
	if pod := m.pod(t, "once"); pod.Status.Phase != v1.PodSucceeded {
		t.Errorf("phase %s", pod.Status.Phase)
	}
	m.must(t, "apply", path)
	if r := m.run(t, "plan", "--exit-code", path); r.code != 0 {
		t.Errorf("the plan of a completed pod is not empty: exit code %d\n%s", r.code, r.stdout)
	}
	r := m.must(t, "plan", edited(t, path, `"0"`, `"1"`))
	if !strings.Contains(r.stdout, "The pod has finished. Delete it first") {
		t.Errorf("an edited, completed pod:\n%s", r.stdout)
	}
	m.must(t, "delete", "once")
}

func testInitFailure(t *testing.T, m *machine) {
	path := write(t, `apiVersion: v1
kind: Pod
metadata: {name: badinit}
spec:
  restartPolicy: Never
  initContainers:
  - {name: first, image: "registry.local/podctl/demo:1", args: [exit, "7"]}
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [sleep]}
`)
	r := m.run(t, "apply", "--wait", "--timeout", "30s", path)
	if r.code != 3 || !strings.Contains(r.stderr, "first exited 7") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	m.must(t, "delete", "badinit")
}

func testLiveness(t *testing.T, m *machine) {
	path := write(t, `apiVersion: v1
kind: Pod
metadata: {name: sick}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [serve, --broken, livez]
    livenessProbe:
      httpGet: {path: /livez, port: 8080}
      periodSeconds: 1
      failureThreshold: 2
`)
	m.must(t, "apply", "--wait=started", path)
	before, began := m.ids(t, "sick"), time.Now()
	for range 3 {
		if r := m.run(t, "probe", "sick"); r.code != 4 {
			t.Errorf("probe: exit code %d\n%s", r.code, r.stdout)
		}
	}
	// On a busy machine, the three probes take longer than a period, and more than one counts.
	if quick := time.Since(began) < time.Second; quick && len(m.plan(t, path).Steps) > 0 {
		t.Error("three quick probes are enough to restart a container")
	}
	time.Sleep(1100 * time.Millisecond)
	m.run(t, "probe", "sick")
	if r := m.must(t, "plan", path); !strings.Contains(r.stdout, "liveness probe failed") {
		t.Errorf("the plan after the threshold:\n%s", r.stdout)
	}
	m.must(t, "apply", path)
	// On a busy machine, the failure may be older than two periods by now. Then another failure must confirm it.
	waitFor(t, func() bool {
		after := m.ids(t, "sick")
		if after["app"] != "" && after["app"] != before["app"] {
			return true
		}
		m.must(t, "apply", "--probe", path)
		return false
	})
	m.must(t, "delete", "sick")
}

func testMissingReference(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", write(t, two))
	before := m.ids(t, "two")
	broken := write(t,
		strings.Replace(two, "args: [sleep]}\n", `args: [sleep], envFrom: [{configMapRef: {name: absent}}]}`+"\n", 1))
	r := m.run(t, "apply", "--wait", "--timeout", "20s", broken)
	if r.code != 3 || !strings.Contains(r.stderr, "absent") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if after := m.ids(t, "two"); !sameMap(before, after) {
		t.Errorf("before %v, after %v: want running containers unchanged", before, after)
	}
	m.must(t, "delete", "two")
}

func testMissingImage(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", write(t, two))
	before := m.ids(t, "two")
	broken := write(t, strings.Replace(two, "podctl/demo:1", "podctl/demo:absent", 1))
	r := m.run(t, "apply", broken)
	if r.code != 1 || !strings.Contains(r.stderr, "demo:absent") || !strings.Contains(r.stderr, "pod default/two") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if after := m.ids(t, "two"); !sameMap(before, after) {
		t.Errorf("before %v, after %v: want no stop if an image cannot be pulled", before, after)
	}
	m.must(t, "delete", "two")
	mixed := write(t, `apiVersion: v1
kind: Pod
metadata: {name: mixed}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: present, image: "registry.local/podctl/demo:1", args: [sleep]}
  - {name: always, image: "registry.local/podctl/demo:1", imagePullPolicy: Always, args: [sleep]}
  - {name: never, image: "registry.local/podctl/demo:1", imagePullPolicy: Never, args: [sleep]}
  - {name: bad, image: "registry.local/UPPER:1", args: [sleep]}
`)
	if r := m.must(t, "plan", mixed); !strings.Contains(r.stdout, "InvalidImageName") ||
		!strings.Contains(r.stdout, "UPPER:1") {
		t.Errorf("an invalid image name is held:\n%s", r.stdout)
	}
	if r := m.run(t, "apply", mixed); r.code != 1 || !strings.Contains(r.stderr, "container always: ErrImagePull") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if ids := m.ids(t, "mixed"); len(ids) != 2 || ids["present"] == "" || ids["never"] == "" {
		t.Errorf("running %v: want all containers whose images exist, even if other images are missing", ids)
	}
	m.must(t, "delete", "mixed")
}

func testHooks(t *testing.T, m *machine) {
	dir := t.TempDir()
	path := write(t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: hooks}
spec:
  terminationGracePeriodSeconds: 30
  volumes: [{name: out, hostPath: {path: %s}}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: out, mountPath: /out}]
    lifecycle:
      postStart: {exec: {command: [/demo, write, /out/started, "yes"]}}
      preStop: {exec: {command: [/demo, write, /out/stopping, "yes"]}}
`, dir))
	m.must(t, "apply", "--wait", path)
	if _, err := os.Stat(filepath.Join(dir, "started")); err != nil {
		t.Error("the postStart hook did not run")
	}
	began := time.Now()
	m.must(t, "delete", "hooks")
	if _, err := os.Stat(filepath.Join(dir, "stopping")); err != nil {
		t.Error("the preStop hook did not run")
	}
	if took := time.Since(began); took > patient(25*time.Second) {
		t.Errorf("a container that handles SIGTERM took %s to stop", took)
	}
}

func testConfigUpdate(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
	before := m.ids(t, "hello")
	changed := edited(t, hello, "Hello from podctl", "Bonjour")
	if r := m.must(t, "plan", changed); !strings.Contains(r.stdout, "volume config") ||
		!strings.Contains(r.stdout, "update in place") {
		t.Errorf("the plan of changed content:\n%s", r.stdout)
	}
	m.must(t, "apply", changed)
	if after := m.ids(t, "hello"); !sameMap(before, after) {
		t.Errorf("before %v, after %v: want changed content updated in place", before, after)
	}
	m.must(t, "apply", hello)
}

func testInterrupt(t *testing.T, m *machine) {
	path := write(t, `apiVersion: v1
kind: Pod
metadata: {name: slow}
spec:
  terminationGracePeriodSeconds: 60
  initContainers:
  - {name: first, image: "registry.local/podctl/demo:1", args: [sleep]}
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [sleep]}
`)
	cmd := m.command(t.Context(), "apply", "--wait", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(m.ids(t, "slow")) == 1 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	m.must(t, "delete", "slow")
}

func testBadInput(t *testing.T, m *machine) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := map[string]struct {
		args        []string
		code        int
		wantMessage string
	}{
		"missing file": {[]string{"plan", "/absent/pod.yaml"}, 1, "no such file"},
		"empty file":   {[]string{"plan", file("empty.yaml", "")}, 5, "contains no Kubernetes object"},
		"broken YAML":  {[]string{"plan", file("broken.yaml", "a: [1\nb: 2\n")}, 5, "broken.yaml:"},
		"unknown field": {
			[]string{"apply", file("unknown.yaml", strings.Replace(two, "args:", "argz:", 1))},
			5,
			"did you mean args?",
		},
		"wrong type": {
			[]string{"apply", file("type.yaml", strings.Replace(two, "[sleep]", "sleep", 1))},
			5,
			"a list is expected",
		},
		"no socket":         {[]string{"-r", "/absent.sock", "plan", hello}, 1, "no such socket"},
		"not a socket":      {[]string{"-r", file("file", ""), "plan", hello}, 1, "is not a socket"},
		"unknown flag":      {[]string{"plan", "--nonsense", hello}, 1, "unknown flag"},
		"unknown command":   {[]string{"aply"}, 1, "did you mean apply"},
		"unknown pod":       {[]string{"delete", "absent"}, 1, "no pod default/absent"},
		"apply without pod": {[]string{"apply"}, 1, "needs a manifest"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := m.run(t, c.args...)
			if r.code != c.code || !strings.Contains(r.stderr, c.wantMessage) {
				t.Errorf("exit code %d, want %d; want %q in:\n%s", r.code, c.code, c.wantMessage, r.stderr)
			}
			if strings.Contains(r.stderr, "rpc error") || strings.Contains(r.stderr, "goroutine") {
				t.Errorf("noise in the message:\n%s", r.stderr)
			}
		})
	}
}

func testExamples(t *testing.T, m *machine) {
	files, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			goal := "--wait"
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "--wait=completed") {
				// A pod that runs once is ready first and completed later.
				goal = "--wait=completed"
			}
			m.must(t, "apply", goal, "--timeout", "60s", path)
			if r := m.run(t, "plan", "--exit-code", path); r.code != 0 {
				t.Errorf("after apply --wait: exit code %d\n%s", r.code, r.stdout)
			}
			m.must(t, "delete", "-f", path)
		})
	}
}

// testDeleteThirty: the containers of a large pod stop concurrently.
func testDeleteThirty(t *testing.T, m *machine) {
	var pod strings.Builder
	pod.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: thirty}\nspec:\n  terminationGracePeriodSeconds: 2\n  containers:\n")
	for i := range 30 {
		fmt.Fprintf(&pod, "  - {name: c%d, image: 'registry.local/podctl/demo:1', args: [sleep]}\n", i)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", write(t, pod.String()))
	m.must(t, "--timeout", "60s", "delete", "thirty")
}

func testDelete(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
	uid := string(m.pod(t, "hello").UID)
	m.must(t, "delete", "hello")
	if ids := m.ids(t, "hello"); len(ids) > 0 {
		t.Errorf("containers are left: %v", ids)
	}
	for _, state := range []runtimeapi.PodSandboxState{
		runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
	} {
		if left := m.sandboxes(t, "hello", state); len(left) > 0 {
			t.Errorf("sandboxes are left: %v", left)
		}
	}
	dirs, err := cgroupsBelow(m.cgroupRoot())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if strings.Contains(dir, uid) || strings.Contains(dir, strings.ReplaceAll(uid, "-", "_")) {
			t.Errorf("cgroup %s is left", dir)
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.state, "pods"))
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == uid }) {
		t.Errorf("the pod's directory is left: %v", err)
	}
	if r := m.run(t, "get", "hello"); r.code != 1 {
		t.Errorf("get of a deleted pod: exit code %d", r.code)
	}
}
