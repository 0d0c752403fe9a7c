//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// atOnce runs podctl several times concurrently, and returns the results.
func (m *machine) atOnce(t *testing.T, calls ...[]string) []result {
	t.Helper()
	results := make([]result, len(calls))
	var group sync.WaitGroup
	for i, args := range calls {
		group.Go(func() { results[i] = m.run(t, args...) })
	}
	group.Wait()
	return results
}

// oneSet checks that a pod has one sandbox, and one running container of each name.
func (m *machine) oneSet(t *testing.T, name string, containers int) {
	t.Helper()
	if ids := m.ids(t, name); len(ids) != containers {
		t.Errorf("running %v, want %d", ids, containers)
	}
	m.readySandbox(t, name)
	if left := m.sandboxes(t, name, runtimeapi.PodSandboxState_SANDBOX_NOTREADY); len(left) > 0 {
		t.Errorf("sandboxes are left: %v", left)
	}
}

// testManyAtOnce: twenty concurrent applies of a new pod create it once. Concurrent applies of two manifests, with
// probes between them, end with one of the two.
func testManyAtOnce(t *testing.T, m *machine) {
	path := write(t, two)
	var calls [][]string
	for range 20 {
		calls = append(calls, []string{"apply", "--wait", path})
	}
	for _, r := range m.atOnce(t, calls...) {
		if r.code != 0 {
			t.Errorf("exit code %d\n%s", r.code, r.stderr)
		}
	}
	m.oneSet(t, "two", 2)
	if records := m.records(t, "two"); len(records) != 2 {
		t.Errorf("records %v, want one for each container", records)
	}
	other := edited(t, path, "{name: b", "{name: c")
	calls = nil
	for range 3 {
		calls = append(calls, []string{"apply", path}, []string{"apply", other}, []string{"probe", "two"})
	}
	for i, r := range m.atOnce(t, calls...) {
		if r.code != 0 {
			t.Errorf("%v: exit code %d\n%s", calls[i], r.code, r.stderr)
		}
	}
	m.oneSet(t, "two", 2)
	first, second := m.run(t, "plan", "--exit-code", path), m.run(t, "plan", "--exit-code", other)
	if min(first.code, second.code) != 0 || max(first.code, second.code) != 2 {
		t.Errorf("the pod matches none or both of its manifests: exit codes %d and %d", first.code, second.code)
	}
	m.must(t, "delete", "two")
}

const unready = `apiVersion: v1
kind: Pod
metadata: {name: unready}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [serve, --broken, readyz]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// testDeleteWins: waiting applies do not delay a delete, and do not recreate the pod.
func testDeleteWins(t *testing.T, m *machine) {
	path, logs := write(t, unready), t.TempDir()
	before := m.locks(t)
	var group sync.WaitGroup
	for i := range 3 {
		log, err := os.Create(filepath.Join(logs, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		cmd := m.command(t.Context(), "-v", "--timeout", "60s", "apply", "--wait", path)
		cmd.Stderr = log
		group.Go(func() {
			_ = cmd.Run()
			text, err := os.ReadFile(log.Name())
			if code := cmd.ProcessState.ExitCode(); err != nil || code != 3 ||
				!strings.Contains(string(text), "pod default/unready was deleted by another podctl") {
				t.Errorf("exit code %d, %v\n%s", code, err, text)
			}
		})
		// The apply waits once it has listed its containers again.
		waitFor(t, func() bool {
			text, err := os.ReadFile(log.Name())
			return err == nil && strings.Count(string(text), "method=ListContainers") > 10
		})
	}
	m.must(t, "--timeout", "20s", "delete", "unready")
	group.Wait()
	if left := m.records(t, "unready"); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
	if left := m.locks(t); !slices.Equal(left, before) {
		t.Errorf("the locks are %v, before they were %v", left, before)
	}
}

// locks returns the lock files.
func (m *machine) locks(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.state, "locks", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const slowHook = `apiVersion: v1
kind: Pod
metadata: {name: slowhook}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    lifecycle: {postStart: {exec: {command: [/demo, sleep]}}}
`

// testStoppedHolder: if a process is stopped in the middle of a pass, others wait up to their time limit, and print the
// holder of the lock. After the process is killed, they do not wait.
func testStoppedHolder(t *testing.T, m *machine) {
	path := write(t, slowHook)
	holder := m.command(t.Context(), "apply", path)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(m.ids(t, "slowhook")) == 1 })
	if err := holder.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	who := fmt.Sprintf("pid %d (podctl apply", holder.Process.Pid)
	for _, args := range [][]string{
		{"apply", path}, {"delete", "slowhook"}, {"--timeout=15s", "--lock-timeout", "1m", "restart", "slowhook"},
	} {
		r := m.run(t, append([]string{"--lock-timeout", "2s"}, args...)...)
		if r.code != 1 || !strings.Contains(r.stderr, "waiting for "+who) ||
			!strings.Contains(r.stderr, "pod default/slowhook is in use by "+who) {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	m.must(t, "--lock-timeout", "5s", "delete", "slowhook")
}

// testManyPods: many pods at once, in one call and in a call for each pod. PODCTL_PODS is the number of pods.
func testManyPods(t *testing.T, m *machine) {
	count, err := strconv.Atoi(os.Getenv("PODCTL_PODS"))
	if err != nil {
		count = 6
	}
	dir := t.TempDir()
	var applies, deletes [][]string
	for i := range count {
		name := fmt.Sprintf("many-%d", i)
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(two, "name: two", "name: "+name, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		applies, deletes = append(applies, []string{"apply", "--wait", path}), append(deletes, []string{"delete", name})
	}
	for _, r := range m.atOnce(t, applies[:count/2]...) {
		if r.code != 0 {
			t.Errorf("exit code %d\n%s", r.code, r.stderr)
		}
	}
	m.must(t, "apply", "--wait", "--parallel", "16", dir)
	for i := range count {
		m.oneSet(t, fmt.Sprintf("many-%d", i), 2)
	}
	for _, r := range m.atOnce(t, deletes...) {
		if r.code != 0 {
			t.Errorf("exit code %d\n%s", r.code, r.stderr)
		}
	}
}
