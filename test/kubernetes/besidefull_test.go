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
	// fullPause is the time between two requests after a restart.
	fullPause = 20 * time.Millisecond
)

// full are the measurements of a full node.
type full struct {
	// memory is in MiB, and processor the used part of one processor in percent. restart is the number of statuses that
	// the program sends when it is restarted. answers and synced are the seconds from the restart until the server of the
	// node answers, and until the program knows the state of all pods.
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
			found[name] = newNode(t).measure(t, name).runFull(t, name)
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
	row("restart → the state of all pods is known", "s", p.synced, k.synced)
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

func (m *measurement) runFull(t *testing.T, name string) *full {
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
	m.restartFull(t, name, f)
	time.Sleep(besideRest)
	end()
	f.restart = m.requestCount(t, statusRequests) - before
	return f
}

// passes finds the passes in the metrics of a kubelet.
var passes = regexp.MustCompile(
	`(?m)^kubelet_pod_worker_duration_seconds_count\{operation_type="(?:create|sync|update)"\} (\S+)$`)

// restartFull starts the program again and measures how long that takes.
func (m *measurement) restartFull(t *testing.T, name string, f *full) {
	t.Helper()
	begun := time.Now()
	program := m.begin()
	untilEvery(t, fullPause, func() string {
		program.alive(t)
		if _, err := fetch(t.Context(), nodeProxy+"/healthz", token); err != nil {
			return err.Error()
		}
		return ""
	})
	f.answers = time.Since(begun).Seconds()
	known := timeOfPasses
	if name == "podctl" {
		known = timeOfReady
	}
	untilEvery(t, fullPause, func() string {
		program.alive(t)
		at, missing := known(t, program)
		f.synced = at.Sub(begun).Seconds()
		if missing == "" && f.synced < 0 {
			return "the agent before knew the state of all pods"
		}
		return missing
	})
	m.api.awaitNode(t, program)
}

const nodeProxy = serverURL + "/api/v1/nodes/node/proxy"

// timeOfPasses returns the time at which a kubelet has made as many passes as the node has pods, or what is missing. A
// kubelet counts its passes from zero at its start. Metrics of podctl are not used here: podctl measures all pods for
// each request, which slows the passes.
func timeOfPasses(t *testing.T, _ *process) (at time.Time, missing string) {
	t.Helper()
	text, err := fetch(t.Context(), nodeProxy+"/metrics", token)
	if err != nil {
		t.Fatal(err)
	}
	if made := sumOf(t, text, passes); made < fullPods {
		return at, fmt.Sprintf("%v passes were made", made)
	}
	return time.Now(), ""
}

var readyLine = regexp.MustCompile(`(?m)^time=(\S+) level=INFO msg=ready$`)

// timeOfReady returns the time at which podctl knew the state of all pods, or what is missing. It is in the last line
// of its log with msg=ready.
func timeOfReady(t *testing.T, program *process) (at time.Time, missing string) {
	t.Helper()
	found := readyLine.FindAllStringSubmatch(read(t, program.log), -1)
	if len(found) == 0 {
		return at, "the log has no line with msg=ready"
	}
	at, err := time.Parse(time.RFC3339Nano, found[len(found)-1][1])
	if err != nil {
		t.Fatal(err)
	}
	return at, ""
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
