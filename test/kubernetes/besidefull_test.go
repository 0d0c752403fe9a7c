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
	// fullSynced is the limit for the time from a restart of podctl until it knows the state of all pods.
	fullSynced = time.Second
	// fullPause is the time between two requests for the metrics after a restart.
	fullPause = 20 * time.Millisecond
)

// full are the measurements of a full node.
type full struct {
	// memory is in MiB, and processor the used part of one processor in percent. restart is the number of statuses that
	// the program sends when it is restarted. answers and synced are the seconds from the restart until the server of the
	// node answers, and until the program has made as many passes as the node has pods.
	memory, processor, restart, answers, synced float64
	// effects is what a client of the pods notices of the restart.
	effects effects
}

// TestBesideKubeletFull measures podctl agent and a kubelet with as many pods as a node may have. A restart of podctl
// must send no status, and a client with a hundred requests per second must not lose one. The other figures are for
// people.
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
		ratio := "–"
		if k > 0 {
			ratio = fmt.Sprintf("%.2f", p/k)
		}
		fmt.Fprintf(&b, "| %s | %.2f %s | %.2f %s | %s |\n", what, p, unit, k, unit, ratio)
	}
	row("memory", "MiB", p.memory, k.memory)
	row("processor while nothing happens", "%", p.processor, k.processor)
	row("statuses sent at a restart", "", p.restart, k.restart)
	row("restart → the node's server answers", "s", p.answers, k.answers)
	row("restart → first pass of all pods", "s", p.synced, k.synced)
	row("requests of a client at a restart", "", float64(p.effects.requests.Load()), float64(k.effects.requests.Load()))
	row("failed requests", "", float64(p.effects.lost.Load()), float64(k.effects.lost.Load()))
	t.Logf("%d pods\n| measured | podctl | kubelet | ratio |\n|---|---|---|---|\n%s", fullPods, b.String())
	if p.restart > 0 || p.effects.lost.Load() > 0 {
		t.Error("a restart of podctl has an effect")
	}
	if p.synced > fullSynced.Seconds() {
		t.Logf("target missed: %.2f s until podctl knows the state of all pods, at most %s", p.synced, fullSynced)
	}
}

func (m *measurement) runFull(t *testing.T) *full {
	t.Helper()
	program := m.beginWith(t, fullPods)
	pid := program.cmd.Process.Pid
	f := &full{processor: idleUsage(t, pid)}
	f.memory = residentMemory(t, pid)
	before := m.requestCount(t, statusRequests)
	var kept []string
	for i := range fullPods {
		kept = append(kept, "kept-"+strconv.Itoa(i))
	}
	end := m.useServing(&f.effects, kept)
	program.end(t)
	m.restartFull(t, f)
	time.Sleep(besideRest)
	end()
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
	untilEvery(t, fullPause, func() string {
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
