//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/agent/api"
)

// testAgentReload: after a change of the configuration, the agent restarts and changes no pods. A wrong configuration
// is reported to the caller and has no effect.
func testAgentReload(t *testing.T, m *machine) {
	first, second, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "config.yaml")
	configure := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, name := range map[string]string{first: "first", second: "second"} {
		err := os.WriteFile(filepath.Join(dir, name+".yaml"), fmt.Appendf(nil, simplePod, name, "1s"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	configure("agent:\n  sources: [" + first + "]\n")
	a := startAgent(t, m, "", "--config", file)
	until(t, "first runs", func() bool { return m.isReady(t, "first") })
	ids := m.ids(t, "first")

	configure("agent:\n  sauces: []\n")
	if r := m.run(t, "agent", "reload"); r.code != 1 || !strings.Contains(r.stderr, "config.yaml:2") ||
		!strings.Contains(r.stderr, "keeps its current configuration") {
		t.Errorf("a wrong configuration: exit code %d, %s", r.code, r.stderr)
	}
	configure("agent:\n  sources: [" + first + "]\n  container-log-max-size: abc\n")
	if r := m.run(t, "agent", "reload"); r.code != 1 || !strings.Contains(r.stderr, "--container-log-max-size") {
		t.Errorf("a wrong value: exit code %d, %s", r.code, r.stderr)
	}
	configure("agent:\n  sources: [" + first + ", " + second + "]\n")
	m.must(t, "agent", "reload")
	until(t, "second runs", func() bool { return m.isReady(t, "second") })
	if now := m.ids(t, "first"); !sameMap(ids, now) {
		t.Errorf("the reload changed %v to %v", ids, now)
	}
	if pid := a.status(t).PID; pid != a.cmd.Process.Pid {
		t.Errorf("the agent has another process, %d", pid)
	}
	configure("agent:\n  sources: [" + first + "]\n")
	if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "the second source has gone", func() bool {
		var s api.Status
		// The agent does not answer while it restarts.
		r := m.run(t, "agent", "status", "-o", "json")
		return r.code == 0 && json.Unmarshal([]byte(r.stdout), &s) == nil &&
			!slices.ContainsFunc(s.Sources, func(from api.Source) bool { return from.Name == second })
	})
	if !m.isReady(t, "second") {
		t.Error("a pod was deleted because its source is not read any more")
	}
	a.stop(t)
	m.must(t, "delete", "first", "second")
}

// testAgentStopPods: with --stop-pods the pods stop with the agent, those of low priority first. The next agent starts
// them again, even one that ended with success.
func testAgentStopPods(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir(), "--stop-pods", "--shutdown-grace", patient(10*time.Second).String())
	low := strings.Replace(fmt.Sprintf(simplePod, "low", "1s"), "spec:\n", "spec:\n  restartPolicy: OnFailure\n", 1)
	high := strings.Replace(fmt.Sprintf(simplePod, "high", "1s"), "spec:\n", "spec:\n  priority: 1000\n", 1)
	a.put(t, "low.yaml", low)
	a.put(t, "high.yaml", high)
	until(t, "both run", func() bool { return m.isReady(t, "low") && m.isReady(t, "high") })
	a.stop(t)
	ended := map[string]time.Time{}
	for _, name := range []string{"low", "high"} {
		status := m.pod(t, name).Status.ContainerStatuses[0]
		if status.State.Running != nil {
			t.Fatalf("%s runs: %+v", name, status)
		}
		last := status.State.Terminated
		if last == nil {
			last = status.LastTerminationState.Terminated
		}
		ended[name] = last.FinishedAt.Time
	}
	if ended["high"].Before(ended["low"]) {
		t.Errorf("the pod of high priority ended first: %v", ended)
	}
	a = startAgent(t, m, a.dir)
	until(t, "both run again", func() bool { return m.isReady(t, "low") && m.isReady(t, "high") })
	a.stop(t)
	m.must(t, "delete", "low", "high")
}

// testAgentRestartSignals: signals that arrive while the agent restarts are not lost, and a signal to reload does not
// kill it.
func testAgentRestartSignals(t *testing.T, m *machine) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "config.yaml")
	configure := func(seconds int) {
		if err := os.WriteFile(file, fmt.Appendf(nil, "agent:\n  sources: [%s]\n  url-interval: %ds\n", dir, seconds), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		configure(20)
		a := startAgent(t, m, "", "--config", file)
		configure(21)
		m.must(t, "agent", "reload")
		for range 10 {
			time.Sleep(time.Duration(i+1) * 4 * time.Millisecond)
			if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatalf("a reload has ended the agent: %v", err)
			}
		}
		if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- a.cmd.Wait() }()
		select {
		case err := <-ended:
			state, _ := a.cmd.ProcessState.Sys().(syscall.WaitStatus)
			if err != nil && state.Signal() != syscall.SIGTERM {
				t.Errorf("the agent ended with %v", err)
			}
		case <-time.After(patient(10 * time.Second)):
			t.Fatal("the agent does not end, although it got a signal during its restart")
		}
	}
}
