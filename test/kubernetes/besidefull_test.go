package kubernetes

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// fullPods is the number of pods of a full node.
	fullPods = 110
	// idleTime is how long the processor time of a full node is measured.
	idleTime = time.Minute
)

// full are the measurements of a full node.
type full struct {
	// memory is in MiB, and processor the used part of one processor in percent. restart is the number of statuses that
	// the program sends when it is restarted. answers and synced are the seconds from the restart until the server of the
	// node answers, and until the program has made as many passes as the node has pods.
	memory, processor, restart, answers, synced float64
}

// TestBesideKubeletFull measures podctl agent and a kubelet with as many pods as a node may have. It checks only that
// both run the pods: the figures are for people.
func TestBesideKubeletFull(t *testing.T) {
	found := map[string]*full{}
	for _, name := range []string{"podctl", "kubelet"} {
		t.Run(name, func(t *testing.T) {
			found[name] = newNode(t).measure(t, name).runFull(t)
		})
	}
	p, k := found["podctl"], found["kubelet"]
	if t.Failed() || p == nil || k == nil {
		return
	}
	var b strings.Builder
	row := func(what, unit string, p, k float64) {
		fmt.Fprintf(&b, "| %s | %.2f %s | %.2f %s | %.2f |\n", what, p, unit, k, unit, p/k)
	}
	row("memory", "MiB", p.memory, k.memory)
	row("processor while nothing happens", "%", p.processor, k.processor)
	row("statuses sent at a restart", "", p.restart, k.restart)
	row("restart → the node's server answers", "s", p.answers, k.answers)
	row("restart → first pass of all pods", "s", p.synced, k.synced)
	t.Logf("%d pods\n| measured | podctl | kubelet | ratio |\n|---|---|---|---|\n%s", fullPods, b.String())
}

func (m *measurement) runFull(t *testing.T) *full {
	t.Helper()
	program := m.beginWith(t, fullPods)
	pid := program.cmd.Process.Pid
	f := &full{processor: idleUsage(t, pid)}
	f.memory = residentMemory(t, pid)
	before := m.requestCount(t, statusRequests)
	program.end(t)
	m.restartFull(t, f)
	time.Sleep(besideRest)
	f.restart = m.requestCount(t, statusRequests) - before
	return f
}

// passes finds the passes in the metrics of a kubelet and of podctl.
var passes = regexp.MustCompile(
	`(?m)^kubelet_pod_worker_duration_seconds_count\{operation_type="(?:create|sync|update)"\} (\S+)$`)

// restartFull starts the program again and measures how long that takes. Both programs count their passes from zero.
func (m *measurement) restartFull(t *testing.T, f *full) {
	t.Helper()
	begun := time.Now()
	program := m.begin()
	until(t, func() string {
		program.alive(t)
		text, err := fetch(t.Context(), serverURL+"/api/v1/nodes/node/proxy/metrics", token)
		if err != nil {
			return err.Error()
		}
		f.synced = time.Since(begun).Seconds()
		if f.answers == 0 {
			f.answers = f.synced
		}
		if made := sumOf(t, text, passes); made < fullPods {
			return fmt.Sprintf("%v passes were made", made)
		}
		return ""
	})
	m.api.awaitNode(t, program)
}

// processorTime returns the processor time that a process has used.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name of the program may contain spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}
