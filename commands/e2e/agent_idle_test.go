//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const probedPod = `apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    readinessProbe: {periodSeconds: 5, timeoutSeconds: 5, exec: {command: [/demo, check, file, /demo]}}
`

// idleTime is the time for which the agent has nothing to do. It ends before the first periodic task of a minute, and
// before the agent first checks a pod without events.
const idleTime = 25 * time.Second

// testAgentIdle: an idle agent writes no log lines and no files. Its only calls to the runtime are lists of containers
// (each second if the runtime sends no events, otherwise each minute) and the execs of its probes.
func testAgentIdle(t *testing.T, m *machine) {
	port := freePort(t)
	a := startAgent(t, m, t.TempDir(), "--applied=false", "--listen", port)
	names, files := []string{"probed"}, []string{"probed.yaml"}
	a.put(t, files[0], probedPod)
	for i := range 5 {
		name := fmt.Sprintf("quiet-%d", i)
		names, files = append(names, name), append(files, name+".yaml")
		a.put(t, name+".yaml", fmt.Sprintf(simplePod, name, "1h"))
	}
	for _, name := range names {
		until(t, name+" is ready", func() bool { return m.isReady(t, name) })
	}
	// The pods may take half a minute to become ready. A new agent has its first task of a minute after the idle time.
	a.stop(t)
	a = startAgent(t, m, a.dir, "--applied=false", "--listen", port)
	began := time.Now()
	// The agent first checks images ten seconds after its start.
	time.Sleep(time.Until(began.Add(13 * time.Second)))

	operations, lists := a.idleFor(t, port, idleTime)
	most := idleTime/time.Second + 2
	if m.sendsEvents(t) {
		most = 1
	}
	if lists > int(most) {
		t.Errorf("%d lists in %s", lists, idleTime)
	}
	if probes := operations["exec_sync"]; probes < 4 || probes > 6 {
		t.Errorf("%d probes in %s, at a period of 5 s", probes, idleTime)
	}
	delete(operations, "exec_sync")
	for _, operation := range []string{"list_podsandbox", "list_containers"} {
		// The two reads of the metrics list the running containers.
		if operations[operation] > lists+2 {
			t.Errorf("%d calls of %s, with %d lists", operations[operation], operation, lists)
		}
		delete(operations, operation)
	}
	if len(operations) > 0 {
		t.Errorf("idle, the agent asked the runtime for %v", operations)
	}
	a.remove(t, files...)
	for _, name := range names {
		until(t, name+" is gone", func() bool { return m.isGone(t, name) && a.podStatus(t, name) == nil })
	}
	a.stop(t)
}

// idleFor waits, and returns the number of the agent's calls to the runtime and of its full lists of containers in that
// time.
func (a *agentProcess) idleFor(t *testing.T, port string, idle time.Duration) (operations map[string]int, lists int) {
	t.Helper()
	countersOf(t, port) // The first read of the metrics after a change observes the pods.
	time.Sleep(2 * time.Second)
	log, files, written := a.log.String(), a.m.ownFiles(t), a.written(t)
	before := countersOf(t, port)
	time.Sleep(idle)
	after := countersOf(t, port)
	if more := strings.TrimPrefix(a.log.String(), log); more != "" {
		t.Errorf("idle, the agent logged:\n%s", more)
	}
	if now := a.m.ownFiles(t); !maps.Equal(files, now) {
		t.Errorf("idle, files have changed: %v", changedFiles(files, now))
	}
	if now := a.written(t); now != written {
		t.Errorf("idle, the agent wrote %s bytes, %s before", now, written)
	}
	operations = map[string]int{}
	for name, n := range after {
		if operation, ok := strings.CutPrefix(name, `kubelet_runtime_operations_total{operation_type="`); ok &&
			n != before[name] {
			operations[strings.TrimSuffix(operation, `"}`)] = n - before[name]
		}
	}
	const relists = "kubelet_pleg_relist_duration_seconds_count"
	return operations, after[relists] - before[relists]
}

// written returns the number of bytes that the agent has written to disks.
func (a *agentProcess) written(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", a.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	bytes, _, _ := strings.Cut(rest, "\n")
	return bytes
}

var counterLine = regexp.MustCompile(`(?m)^(\S+) (\d+)$`)

// countersOf returns the metrics of the agent that are whole numbers.
func countersOf(t *testing.T, port string) map[string]int {
	t.Helper()
	counters := map[string]int{}
	for _, match := range counterLine.FindAllStringSubmatch(read(t, "http://"+port+"/metrics"), -1) {
		n, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		counters[match[1]] = n
	}
	return counters
}

// ownFiles returns the files of podctl with their modification times. It omits the files of the runtime, and the logs,
// which containers write.
func (m *machine) ownFiles(t *testing.T) map[string]time.Time {
	t.Helper()
	files := map[string]time.Time{}
	err := filepath.WalkDir(m.state, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(m.state, "node") || path == m.logs {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err == nil {
			files[path] = info.ModTime()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// changedFiles returns the files that differ.
func changedFiles(before, now map[string]time.Time) []string {
	var changed []string
	for path, at := range now {
		if was, ok := before[path]; !ok || !was.Equal(at) {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	return changed
}

// sendsEvents reports whether the runtime sends container events. containerd 1.6 does not.
func (m *machine) sendsEvents(t *testing.T) bool {
	t.Helper()
	reply, err := m.cri.Version(t.Context(), &runtimeapi.VersionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return !strings.HasPrefix(strings.TrimPrefix(reply.GetRuntimeVersion(), "v"), "1.6.")
}
