//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const sick = `apiVersion: v1
kind: Pod
metadata: {name: sick}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [log, --forever]
    livenessProbe: {exec: {command: [/demo, check, file, /absent]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 2}
    readinessProbe: {exec: {command: [/demo, check, file, /demo]}, periodSeconds: 1, timeoutSeconds: 20, successThreshold: 2}
`

// testProbeWait: probes run at their periods until their thresholds decide, and plan acts on the result.
func testProbeWait(t *testing.T, m *machine) {
	manifest := write(t, sick)
	m.must(t, "apply", manifest)
	r := m.run(t, "probe", "--wait", "--timeout", "30s", "sick")
	if r.code != 4 || !strings.Contains(r.stdout, "2/2") || !strings.Contains(r.stdout, "no such file") {
		t.Errorf("probe --wait: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := m.must(t, "plan", manifest); !strings.Contains(r.stdout, "liveness probe failed") {
		t.Errorf("plan:\n%s", r.stdout)
	}
	if r := m.run(t, "probe", "--wait", "--type", "readiness", "--no-record", "--timeout", "30s", "sick"); r.code != 0 {
		t.Errorf("probe of readiness alone: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	never := write(t, strings.NewReplacer("name: sick", "name: never", "file, /demo", "file, /absent",
		"successThreshold: 2", "failureThreshold: 100").Replace(sick))
	m.must(t, "apply", never)
	if r := m.run(t, "probe", "--wait", "--type", "readiness", "--timeout=5s", "never"); r.code != 3 ||
		strings.Contains(r.stdout, "No probes") {
		t.Errorf("a probe without a result in time: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := m.must(t, "wait", "--for=deleted", "--timeout=30s", "absent"); !strings.Contains(r.stdout, "is deleted") {
		t.Errorf("waiting for an absent pod:\n%s", r.stdout)
	}
	if r := m.run(t, "wait", "--for=deleted", "--timeout=5s", "absent", "sick"); r.code != 3 ||
		strings.Contains(r.stdout, "sick is deleted") {
		t.Errorf("waiting for the deletion of an existing pod: exit code %d\n%s", r.code, r.stdout)
	}
	uid := string(m.pod(t, "sick").UID)
	if r := m.run(t, "delete", "--dry-run", uid[:4]); r.code != 1 {
		t.Errorf("four characters of a uid select a pod: exit code %d\n%s", r.code, r.stdout)
	}
	m.must(t, "delete", "--dry-run", uid[:8])
	m.must(t, "delete", "sick", "never")
}

const ending = `apiVersion: v1
kind: Pod
metadata: {name: ending}
spec:
  restartPolicy: Never
  containers:
  - {name: first, image: "registry.local/podctl/demo:1", args: [exit, --after, 200ms, "7"]}
  - {name: second, image: "registry.local/podctl/demo:1", args: [exit, --after, 5s, "9"]}
  - {name: talks, image: "registry.local/podctl/demo:1", args: [log, --lines, "3"]}
`

// testRun: run prints the logs and exits with the exit code of the pod.
func testRun(t *testing.T, m *machine) {
	manifest := write(t, ending)
	r := m.run(t, "run", "--rm", manifest)
	if r.code != 7 || !strings.Contains(r.stdout, "[talks] line 3") ||
		!strings.Contains(r.stdout, "[second] exiting with 9") {
		t.Errorf("run: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := m.run(t, "get", "ending"); r.code != 1 {
		t.Errorf("the pod exists after --rm:\n%s", r.stdout)
	}
	testRunUnread(t, m)
	for _, args := range [][]string{{"/absent.yaml"}, {"--absent", manifest}, {"--timeout=10s", write(t, sick)}} {
		if r := m.run(t, append([]string{"run"}, args...)...); r.code != 125 {
			t.Errorf("run %v: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
	m.must(t, "delete", "sick")
}

const talking = `apiVersion: v1
kind: Pod
metadata: {name: talking}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: talks, image: "registry.local/podctl/demo:1", args: [log, --forever, --every, 50ms]}]
`

// testRunUnread: closing the output ends the run, and --rm removes the pod.
func testRunUnread(t *testing.T, m *machine) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	cmd := m.command(t.Context(), "run", "--rm", write(t, talking))
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &printed
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 141 || printed.Len() > 0 {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), printed.String())
	}
	_ = writer.Close()
	if r := m.run(t, "get", "talking"); r.code != 1 {
		t.Errorf("the pod exists after --rm:\n%s", r.stdout)
	}
}

// testWait: wait observes changes by other processes, and reports when its goal cannot be reached any more.
func testWait(t *testing.T, m *machine) {
	manifest := write(t, ending)
	m.must(t, "apply", manifest)
	m.mustFail(t, "wait", "--for=completed", "--timeout", "20s", "ending")
	if r := m.run(t, "wait", "--for=started", "--timeout", "20s", "ending"); r.code != 3 ||
		!strings.Contains(r.stderr, "ended as Failed") {
		t.Errorf("waiting for a pod that fails: exit code %d\n%s", r.code, r.stderr)
	}
	m.must(t, "wait", "--for=condition=Ready=False", "--timeout", "20s", "ending")
	if r := m.run(t, "wait", "--for=ready", "--timeout=5s", write(t, sick)); r.code != 3 ||
		!strings.Contains(r.stderr, "in time") {
		t.Errorf("waiting without a pod: exit code %d\n%s", r.code, r.stderr)
	}
	if r := m.run(t, "wait", "--for=wonder", "ending"); r.code != 1 ||
		!strings.Contains(r.stderr, "--for must be one of") {
		t.Errorf("an invalid state: exit code %d\n%s", r.code, r.stderr)
	}
	var group sync.WaitGroup
	group.Go(func() {
		time.Sleep(300 * time.Millisecond)
		m.must(t, "delete", "ending")
	})
	m.must(t, "wait", "--for=deleted", "--timeout", "20s", "ending")
	group.Wait()
}

// testHealthyContainersAreKept: a lost or damaged state of podctl does not restart a healthy container.
func testHealthyContainersAreKept(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
	before := m.ids(t, "hello")
	m.must(t, "probe", "hello")
	checkpoint, err := filepath.Glob(filepath.Join(m.state, "pods", "*", "checkpoint.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range checkpoint {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	m.must(t, "apply", "--probe", hello)
	past := time.Now().Add(-24 * time.Hour)
	if text := m.at(t, past, "plan", "-o", "json", hello); strings.Contains(text, "StopContainer") {
		t.Errorf("setting the clock back stops a container:\n%s", text)
	}
	m.at(t, past, "apply", "--probe", hello)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { m.must(t, "apply", "--probe", hello) })
	}
	group.Wait()
	killContainerd(t, m)
	m.must(t, "node", "up", "--containerd", need(t, "PODCTL_CONTAINERD"))
	m.must(t, "apply", "--probe", hello)
	if after := m.ids(t, "hello"); !sameMap(before, after) {
		t.Errorf("containers before %v and after %v", before, after)
	}
}

// testStops: all hooks start at once, sidecars end last, and a container that ignores the signal is killed after its
// grace period. Each line shows how a container ended.
func testStops(t *testing.T, m *machine) {
	dir := t.TempDir()
	m.must(t, "apply", "--wait", "--timeout", "30s", write(t, strings.ReplaceAll(`apiVersion: v1
kind: Pod
metadata: {name: stops}
spec:
  terminationGracePeriodSeconds: 3
  volumes: [{name: out, hostPath: {path: DIR}}]
  initContainers:
  - name: proxy
    image: registry.local/podctl/demo:1
    restartPolicy: Always
    args: [sleep, --code, "5"]
    volumeMounts: [{name: out, mountPath: /out}]
    lifecycle: {preStop: {exec: {command: [/demo, write, /out/hook, "yes"]}}}
  containers:
  - {name: drains, image: "registry.local/podctl/demo:1", args: [sleep, --drain, 1s, --code, "3"]}
  - {name: deaf, image: "registry.local/podctl/demo:1", args: [sleep, --ignore]}
`, "DIR", dir)))
	began := time.Now()
	r := m.must(t, "delete", "stops")
	if took := time.Since(began); took < 3*time.Second || took > 20*time.Second {
		t.Errorf("the pod took %s to stop", took)
	}
	hook, err := os.Stat(filepath.Join(dir, "hook"))
	if err != nil || hook.ModTime().Sub(began) > 3*time.Second {
		t.Errorf("the sidecar's hook did not begin at once: %v", err)
	}
	var stops []string
	for line := range strings.Lines(r.stderr) {
		if strings.Contains(line, "stop") && strings.Contains(line, "grace") {
			stops = append(stops, strings.TrimSpace(line))
		}
	}
	if len(stops) == 3 {
		// The sidecar waits for the others only for its grace period. At the end of that period, the deaf container is
		// killed.
		slices.Sort(stops[1:])
	}
	for i, want := range []struct{ name, ending string }{
		{"drains", "exited 3"}, {"deaf", "killed after 3s"}, {"proxy", "exited 5"},
	} {
		if i >= len(stops) || !strings.Contains(stops[i], want.name) || !strings.HasSuffix(stops[i], want.ending) {
			t.Errorf("stop %d does not match %s, %s:\n%s", i, want.name, want.ending, r.stderr)
		}
	}
}

// testDeadline: a pod that exceeds its active deadline is stopped, at once by a wait and otherwise by the next apply.
func testDeadline(t *testing.T, m *machine) {
	manifest := write(t, `apiVersion: v1
kind: Pod
metadata: {name: deadline}
spec:
  terminationGracePeriodSeconds: 1
  activeDeadlineSeconds: 2
  containers: [{name: app, image: "registry.local/podctl/demo:1", args: [sleep]}]
`)
	m.must(t, "apply", manifest)
	time.Sleep(2500 * time.Millisecond)
	if r := m.must(t, "plan", manifest); !strings.Contains(r.stdout, "activeDeadlineSeconds, 2") {
		t.Errorf("plan:\n%s", r.stdout)
	}
	m.must(t, "apply", manifest)
	if r := m.must(t, "get", "-o", "yaml", "deadline"); !strings.Contains(r.stdout, "\n  phase: Failed\n") ||
		!strings.Contains(r.stdout, "\n  reason: DeadlineExceeded\n") {
		t.Errorf("status:\n%s", r.stdout)
	}
	if r := m.run(t, "plan", "--exit-code", manifest); r.code != 0 {
		t.Errorf("a pod that reached its deadline still has changes: exit code %d\n%s", r.code, r.stdout)
	}
	m.must(t, "delete", "deadline")
	began := time.Now()
	m.mustFail(t, "apply", "--wait=completed", "--timeout", "20s", manifest)
	if took := time.Since(began); took < 2*time.Second || took > 15*time.Second {
		t.Errorf("the wait ended after %s", took)
	}
	m.must(t, "delete", "deadline")
}
