package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// The crash matrix with an agent instead of a command. The directory of the agent defines the wanted state. The agent
// is killed on the way, and the next agent reaches the same state.

// agentCrashes returns the crashes of agents, one for each shape of a command.
func agentCrashes() map[string]crash {
	all := map[string]crash{}
	for name, c := range crashes() {
		if name != "restart" && name != "several pods" {
			all[name] = crash{Shape: c.Shape, args: []string{"agent", "--eviction=false", "SOURCE"}, agent: true}
		}
	}
	for name, s := range map[string]runtimetest.Shape{
		"workload":            {After: crashedWorkload("1")},
		"workload rolled out": {Before: crashedWorkload("1"), After: crashedWorkload("2")},
		"workload deleted":    {Before: crashedWorkload("1")},
	} {
		all[name] = crash{Shape: s, args: []string{"agent", "--eviction=false", "SOURCE"}, agent: true}
	}
	maps.Copy(all, nodeCrashes())
	return all
}

// crashedWorkload returns a Deployment with its Service, and an unused ConfigMap.
func crashedWorkload(version string) string {
	return strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: a, image: 'i:VERSION'}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: None, selector: {app: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: apart}
data: {version: 'VERSION'}
`, "VERSION", version)
}

const (
	// agentPointsTried is the number of points per shape in a normal run of the tests.
	agentPointsTried = 4
	// agentLimit is the time limit for an agent to reach its goal.
	agentLimit = 30 * time.Second
	// agentCalm is the time without changes after which an agent has reached its goal. It is longer than the two
	// seconds for which an agent keeps a pod whose manifest was removed.
	agentCalm = 3 * time.Second
)

// TestAgentCrashMatrix kills agents as TestCrashMatrix kills commands.
func TestAgentCrashMatrix(t *testing.T) {
	all := agentCrashes()
	if os.Getenv(crashVar) == "" {
		some := []string{
			"replace with a hook", "volumes' content", "delete after sidecar", "workload deleted",
			"workload rolled out", "init containers", "sandbox change", "delete with hooks",
		}
		if testing.Short() {
			some = some[1:4]
		}
		some = append(some, "node: replace", "node: delete with hooks")
		maps.DeleteFunc(all, func(name string, _ crash) bool { return !slices.Contains(some, name) })
	}
	// Agents wait more than commands, because agentCalm takes seconds. So more of them run at once than the processors
	// that t.Parallel counts.
	slots := make(chan struct{}, 4*goruntime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for name, c := range all {
		group.Go(func() {
			t.Run(name, func(t *testing.T) { tryAgent(t, c, slots) })
		})
	}
	group.Wait()
}

// tryAgent tries the points of one shape. slots limits how many labs run concurrently.
func tryAgent(t *testing.T, c crash, slots chan struct{}) {
	t.Helper()
	measure := func() undisturbed {
		slots <- struct{}{}
		defer func() { <-slots }()
		return newLab(newCrashLab).measure(t, c)
	}
	u := measure()
	if os.Getenv(crashVar) == "" {
		u.points = spread(u.points, agentPointsTried)
	}
	u.survivesAll(t, c, slots)
}

// source returns the directory of the agent.
func (l *crashLab) source() string { return l.path("source") }

// prepareSource lets an agent create the initial state, before the agent that is killed starts.
func (l *crashLab) prepareSource() {
	l.t.Helper()
	manifest := filepath.Join(l.source(), "pod.yaml")
	if err := os.MkdirAll(l.source(), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if l.crash.Before != "" {
		l.write("pod.yaml", l.crash.Before)
		l.write("source/pod.yaml", l.crash.Before)
		l.again()
		if err := os.Remove(manifest); err != nil {
			l.t.Fatal(err)
		}
	}
	if l.crash.After != "" {
		l.write("pod.yaml", l.crash.After)
		l.write("source/pod.yaml", l.crash.After)
	}
}

// again runs the command again, to its end.
func (l *crashLab) again() {
	l.t.Helper()
	if !l.crash.agent {
		l.must(l.crash.args...)
		return
	}
	cmd := exec.CommandContext(l.t.Context(), l.podctl, l.args(l.crash.args)...)
	cmd.Env = append(os.Environ(), l.env)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := l.await(running(cmd)); err != nil {
		l.t.Errorf("%v: %v\n%s", l.crash.args, err, out.String())
	}
}

// running returns a function that runs a command to its end and reports its process ID. It keeps its thread, because a
// thread that follows a traced program waits for all children that it has started.
func running(cmd *exec.Cmd) func(started func(pid int)) error {
	return func(started func(pid int)) error {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			return err
		}
		started(cmd.Process.Pid)
		return cmd.Wait()
	}
}

// await runs a process to its end. It stops an agent once the agent has reached its goal.
func (l *crashLab) await(run func(started func(pid int)) error) error {
	l.t.Helper()
	pid, done := make(chan int, 1), make(chan error, 1)
	go func() { done <- run(func(is int) { pid <- is }) }()
	if !l.crash.agent {
		return <-done
	}
	agent, calm := 0, calmness{}
	for end := time.Now().Add(agentLimit); time.Now().Before(end) && !l.isThere(agent, &calm); {
		select {
		case agent = <-pid:
		case err := <-done:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	if agent == 0 {
		l.t.Fatal("the agent does not start") // Process ID 0 would address the whole process group.
	}
	if err := syscall.Kill(agent, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		l.t.Fatal(err)
	}
	return <-done
}

// calmness records since when a state has not changed, and whether all pods of the agent have had a pass.
type calmness struct {
	state string
	since time.Time
	ready bool
}

// isThere reports whether an agent has started and reached its goal.
func (l *crashLab) isThere(pid int, calm *calmness) bool {
	l.t.Helper()
	now := l.state()
	if !slices.ContainsFunc(now, func(line string) bool {
		return strings.Contains(line, fmt.Sprintf("_agent.lock -rw------- \"pid %d ", pid))
	}) {
		return false
	}
	now = slices.DeleteFunc(now, isOfAgent)
	if l.goal != nil {
		missing, left := compare(l.goal, now)
		return len(missing)+len(left) == 0
	}
	if text := strings.Join(now, "\n"); text != calm.state || !calm.ready {
		_, printed := l.run([]string{"agent", "status", "-o", "json"})
		*calm = calmness{text, time.Now(), strings.Contains(printed, `"ready": true`)}
	}
	return calm.ready && time.Since(calm.since) > agentCalm
}

// isOfAgent reports whether a line of the state is about a file that exists only while an agent runs.
func isOfAgent(line string) bool {
	return slices.ContainsFunc([]string{"agent.sock ", "pods-api", "locks/_agent.lock "}, func(name string) bool {
		return strings.HasPrefix(line, "/state/"+name)
	})
}

// deletePod deletes the pod the way the crash does: with a command, or with an agent whose manifest is removed.
func (l *crashLab) deletePod() {
	l.t.Helper()
	switch {
	case l.crash.api:
		l.cluster.server.End("default", "web", 30)
		l.goal = nil
		l.again()
		return
	case !l.crash.agent:
		l.must("delete", "-f", "MANIFEST")
		return
	}
	if err := os.Remove(filepath.Join(l.source(), "pod.yaml")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	l.goal = nil
	l.again()
}
