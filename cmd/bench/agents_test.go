package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestRunningMetric(t *testing.T) {
	const page = "# TYPE kubelet_running_pods gauge\nkubelet_running_pods 110\nkubelet_working_pods 120\n"
	if got := runningMetric(page); got != 110 {
		t.Errorf("%d pods run, want 110", got)
	}
	if got := runningMetric("kubelet_running_containers 3\n"); got != 0 {
		t.Errorf("%d pods run on a page without the metric", got)
	}
}

func TestRunningPods(t *testing.T) {
	const list = `{"items":[{"status":{"phase":"Running"}},{"status":{"phase":"Pending"}},{},{"status":{"phase":"Running"}}]}`
	if got := runningPods(list); got != 2 {
		t.Errorf("%d pods run, want 2", got)
	}
}

// TestIdleTargets checks that the agent is compared with the kubelet for the same pods, and has a limit without one.
func TestIdleTargets(t *testing.T) {
	results := idleResults("110 pods")
	for i, values := range [][2]float64{{1, 4}, {60, 120}, {60, 120}, {14.25, 50}} {
		results[i].add(agentName, values[0])
		results[i].add(kubeletName, values[1])
	}
	want := `| benchmark | floor | crictl | podman | a kubelet | target | |
|---|---|---|---|---|---|---|
| idle: processor time with 110 pods |  |  |  | 0.25× | ≤ 0.33 | met |
| idle: memory with 110 pods |  |  |  | 0.5× | ≤ 0.4 | not met |
| idle: memory with 110 pods |  |  |  | 0.5× | ≤ 64 MiB | 60, met |
`
	if got := summary(results); got != want {
		t.Errorf("the summary is\n%s\nwant\n%s", got, want)
	}
	table := tables("make bench-agent", "", results)
	if !strings.Contains(table, "anonymous memory with 110 pods | podctl agent | 1 | 14.2 |") {
		t.Errorf("the table lacks the anonymous memory:\n%s", table)
	}
}

// TestProcessorTime checks that the processor time of a process grows with its work, and is zero for one that is gone.
func TestProcessorTime(t *testing.T) {
	before := processorTime(os.Getpid())
	// On a busy machine, the process works only for a part of the time.
	var grown time.Duration
	for began := time.Now(); grown < time.Millisecond && time.Since(began) < time.Minute; {
		grown = processorTime(os.Getpid()) - before
	}
	if grown < time.Millisecond || grown > 10*time.Second {
		t.Errorf("the processor time has grown by %v", grown)
	}
	if got := processorTime(1 << 23); got != 0 {
		t.Errorf("a process that does not exist has used %v", got)
	}
}

// TestShapeOfProbedPods checks that there are three probes in ten seconds.
func TestShapeOfProbedPods(t *testing.T) {
	manifest := shape{containers: 1, probed: true}.manifest("p")
	for _, want := range []string{"livenessProbe: {periodSeconds: 10,", "readinessProbe: {periodSeconds: 5,", "args: [serve"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the manifest lacks %q:\n%s", want, manifest)
		}
	}
}
