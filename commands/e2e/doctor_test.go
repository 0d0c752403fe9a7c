//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/commandstest"
)

const busy = `apiVersion: v1
kind: Pod
metadata: {name: busy}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: seed, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  containers:
  - {name: writer, image: "registry.local/podctl/demo:1", args: [log, --forever, --every, 50us]}
  - {name: idle, image: "registry.local/podctl/demo:1", args: [sleep]}
`

// metrics is the output of `podctl top -o json`.
type metrics struct {
	Kind  string
	Items []struct {
		Pod                                           struct{ Name string }
		CPUNanoCores, MemoryWorkingSetBytes, Restarts int64
		Containers                                    []struct {
			Name                                          string
			Running                                       bool
			CPUNanoCores, MemoryWorkingSetBytes, Restarts int64
		}
	}
}

// testTop: a busy container has CPU usage, and a stopped one a restart.
func testTop(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", write(t, busy))
	_, err := m.cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: m.ids(t, "busy")["idle"]})
	if err != nil {
		t.Fatal(err)
	}
	m.must(t, "apply", "--wait", "--ignore-backoff", "--timeout", "60s", write(t, busy))
	var list metrics
	err = json.Unmarshal([]byte(m.must(t, "top", "-o", "json", "--sort-by", "cpu", "busy").stdout), &list)
	if err != nil {
		t.Fatal(err)
	}
	if list.Kind != "PodMetricsList" || len(list.Items) != 1 || len(list.Items[0].Containers) != 2 {
		t.Fatalf("%+v, want one pod with two containers", list)
	}
	pod := list.Items[0]
	writer, idle := pod.Containers[0], pod.Containers[1]
	if writer.Name != "writer" || writer.CPUNanoCores < 1_000_000 || writer.CPUNanoCores > 4_000_000_000 ||
		idle.CPUNanoCores > writer.CPUNanoCores {
		t.Errorf("cpu: %+v, %+v", writer, idle)
	}
	if writer.MemoryWorkingSetBytes < 1<<18 || writer.MemoryWorkingSetBytes > 1<<28 ||
		pod.MemoryWorkingSetBytes <= writer.MemoryWorkingSetBytes {
		t.Errorf("memory: %+v", pod)
	}
	if idle.Restarts != 1 || pod.Restarts != 1 || writer.Restarts != 0 {
		t.Errorf("restarts: %+v", pod)
	}
	if r := m.must(t, "top", "--containers", "busy"); !strings.Contains(r.stdout, "CPU(cores)") ||
		strings.Count(r.stdout, "\nbusy   ") != 2 {
		t.Errorf("the table:\n%s", r.stdout)
	}
	if r := m.must(t, "top", "-n", "empty"); r.stdout != "" ||
		!strings.Contains(r.stderr, "No pods in namespace empty") {
		t.Errorf("no pods: %q %q", r.stdout, r.stderr)
	}
	t.Run("live", func(t *testing.T) {
		skipMeasured(t, "top/live")
		testTopLive(t, m)
	})
	m.must(t, "delete", "busy")
}

// testTopLive: the command prints tables until it is interrupted.
func testTopLive(t *testing.T, m *machine) {
	var out bytes.Buffer
	cmd := m.command(t.Context(), "top", "-A", "--once=false", "--interval", "300ms")
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("an interrupted top exits with %d", cmd.ProcessState.ExitCode())
	}
	if tables := strings.Count(out.String(), "NAMESPACE"); tables < 3 || tables > 8 {
		t.Errorf("%d tables in 2.5 s:\n%s", tables, out.String())
	}
	testTopScreen(t, m)
}

// testTopScreen: on a terminal, each table replaces the previous one.
func testTopScreen(t *testing.T, m *machine) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(1500*time.Millisecond, cancel)
	var out, errs bytes.Buffer
	env := &commands.Env{Out: &out, Err: &errs, OutTTY: true, Now: time.Now, Getenv: func(string) string { return "" }}
	code := commands.Main(ctx, env, []string{"--state-dir", m.state, "top", "--interval", "300ms", "busy"})
	if code != 130 || strings.Count(out.String(), "\x1b[H\x1b[2J"+"POD") < 2 || errs.Len() > 0 {
		t.Errorf("on a terminal: exit code %d\n%q\n%s", code, out.String(), errs.String())
	}
}

// testConfig: settings are read from a file, errors name the file, and -v logs calls without their contents.
func testConfig(t *testing.T, m *machine) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	settings := func(lines string) []string {
		if err := os.WriteFile(config, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--config", config}
	}
	commented := settings("# podctl\nruntime-endpoint: " + m.socket() + "\n")
	if r := m.must(t, append(commented, "version")...); !strings.Contains(r.stdout, config+":2") {
		t.Errorf("version does not print the origin of the endpoint:\n%s", r.stdout)
	}
	if r := m.run(t, append(settings("runtime-endpoint: /absent.sock\n"), "get")...); r.code != 1 ||
		!strings.Contains(r.stderr, "/absent.sock ("+config+":1)") {
		t.Errorf("a wrong endpoint: exit code %d\n%s", r.code, r.stderr)
	}
	if r := m.run(t, append(settings("\nnamspace: a\n"), "get")...); r.code != 1 ||
		!strings.Contains(r.stderr, config+`:2: unknown key "namspace"`) {
		t.Errorf("an unknown key: exit code %d\n%s", r.code, r.stderr)
	}
	cmd := m.command(t.Context(), "-v", "--log-format", "json", "get")
	cmd.Env = append(cmd.Env, "PODCTL_NAMESPACE=from-the-environment")
	r := m.runWith(t, cmd)
	if r.code != 0 || !strings.Contains(r.stderr, "No pods in namespace from-the-environment") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// Calls run at the same time, so their lines have no fixed order.
	if duration := loggedCalls(r.stderr)["ListPodSandbox"]; duration <= 0 {
		t.Errorf("no line in the log for the call ListPodSandbox\n%s", r.stderr)
	}
}

// loggedCalls returns the durations of the successful calls of the runtime that a JSON log contains, by method.
func loggedCalls(log string) map[string]time.Duration {
	calls := map[string]time.Duration{}
	for line := range strings.Lines(log) {
		var call struct {
			Msg, Method, Code string
			Duration          time.Duration
		}
		if json.Unmarshal([]byte(line), &call) == nil && call.Msg == "CRI call" && call.Code == "OK" {
			calls[call.Method] = call.Duration
		}
	}
	return calls
}

// doctorDoc is the output of `podctl doctor -o json`.
type doctorDoc struct {
	Kind       string
	CanRunPods bool
	Checks     []struct{ Name, Result, Found, Advice string }
}

// failed returns the names of the failed checks.
func (d *doctorDoc) failed() string {
	var names []string
	for _, c := range d.Checks {
		if c.Result == "failed" {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, " ")
}

// testDoctor: all checks pass on a working node, and fail without a network or without a runtime.
func testDoctor(t *testing.T, m *machine) {
	var doc doctorDoc
	if err := json.Unmarshal([]byte(m.must(t, "doctor", "-o", "json").stdout), &doc); err != nil ||
		doc.Kind != "Doctor" || !doc.CanRunPods || doc.failed() != "" {
		t.Errorf("%v %+v", err, doc)
	}
	if r := m.must(t, "doctor"); !strings.Contains(r.stdout, "✓ endpoint      unix://"+m.socket()+" (podctl node)") ||
		!strings.Contains(r.stdout, "Pods can run") {
		t.Errorf("the text:\n%s", r.stdout)
	}
	conflist := filepath.Join(m.state, "node/cni/net.d/10-podctl.conflist")
	text, err := os.ReadFile(conflist)
	if err != nil {
		t.Fatal(err)
	}
	// The runtime watches the directory.
	becomes := func(failed string, code int) bool {
		r := m.run(t, "doctor", "-o", "json")
		var doc doctorDoc
		return json.Unmarshal([]byte(r.stdout), &doc) == nil && doc.failed() == failed && r.code == code
	}
	back := func() error { return os.WriteFile(conflist, text, 0o600) }
	t.Cleanup(func() { _ = back() })
	if err := os.Remove(conflist); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return becomes("network cni", 1) })
	if err := back(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return becomes("", 0) })
	if r := m.run(t, "doctor", "-r", "/absent.sock"); r.code != 1 || !strings.Contains(r.stdout, "✗ endpoint") ||
		!strings.Contains(r.stdout, "→ ") {
		t.Errorf("without a runtime: exit code %d\n%s", r.code, r.stdout)
	}
}

// A program that repeats a Secret from its environment and from a file.
const confidant = `apiVersion: v1
kind: Secret
metadata: {name: confidant}
stringData: {word: SECRET, other: "FILED", pin: "PIN"}
---
apiVersion: v1
kind: Pod
metadata: {name: confidant}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  volumes: [{name: files, secret: {secretName: confidant}}]
  containers:
  - name: says
    image: registry.local/podctl/demo:1
    env: [{name: WORD, valueFrom: {secretKeyRef: {name: confidant, key: word}}}]
    envFrom: [{secretRef: {name: confidant}}]
    args: [write, /dev/termination-log, "I know $(WORD)."]
  - name: keeps
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: files, mountPath: /files}]
`

// testDoctorBundle: the archive has the data for a bug report and no value of a Secret, even if a program printed it.
// The digits of one value are also in the times of the runtime.
func testDoctorBundle(t *testing.T, m *machine) {
	const secret, filed = "hunter2-in-a-bundle", "swordfish\\nin two lines"
	pin := strconv.FormatInt(time.Now().Unix(), 10)[:6]
	manifest := write(t, strings.NewReplacer("SECRET", secret, "FILED", filed, "PIN", pin).Replace(confidant))
	m.must(t, "apply", "--wait=started", "--timeout", "60s", manifest)
	waitFor(t, func() bool {
		return strings.Contains(m.must(t, "get", "-o", "yaml", "confidant").stdout, "I know (secret).")
	})
	m.must(t, "apply", manifest)
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if r := m.must(t, "doctor", "--bundle", file); !strings.Contains(r.stderr, "check it before you send it") {
		t.Errorf("%s", r.stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the bundle: %v %v", info, err)
	}
	files := commandstest.Unpack(t, file)
	uid := string(m.pod(t, "confidant").UID)
	for name, wantMessage := range map[string]string{
		"doctor.json":                  `"kind": "Doctor"`,
		"version.json":                 `"runtime": "containerd"`,
		"checkpoints/" + uid + ".json": `"generation"`,
		"snapshot.json":                "I know (secret).",
		"plan.json":                    `"name": "confidant"`,
	} {
		if !strings.Contains(files["podctl-bundle/"+name], wantMessage) {
			t.Errorf("%s does not contain %s:\n%s", name, wantMessage, files["podctl-bundle/"+name])
		}
	}
	for name, text := range files {
		for _, value := range []string{secret, "swordfish", "in two lines"} {
			if strings.Contains(text, value) ||
				strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(value))) {
				t.Errorf("%s contains a secret:\n%s", name, text)
			}
		}
	}
	if r := m.must(t, "snapshot", "confidant"); strings.Contains(r.stdout, secret) ||
		!strings.Contains(r.stdout, "I know (secret).") {
		t.Errorf("a snapshot contains a secret:\n%s", r.stdout)
	}
	snapshot := filepath.Join(t.TempDir(), "snapshot.json")
	if err := os.WriteFile(snapshot, []byte(files["podctl-bundle/snapshot.json"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := m.must(t, "-r", "/absent.sock", "get", "--snapshot", snapshot); !strings.Contains(r.stdout, "confidant") {
		t.Errorf("get of the bundle's snapshot:\n%s", r.stdout)
	}
	m.must(t, "delete", "confidant")
}
