package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSumOfAMetric(t *testing.T) {
	const page = `# HELP calls How many.
calls{kind="a"} 3
calls{kind="b c"} 4.5
calls_failed{kind="a"} 100
running 7
`
	for metric, want := range map[string]float64{"calls": 7.5, "running": 7, "other": 0, "call": 0} {
		if got := sumOf(page, metric); got != want {
			t.Errorf("the sum of %s is %v, want %v", metric, got, want)
		}
	}
}

func TestRunningPods(t *testing.T) {
	got, err := runningPods([]byte(
		`{"items": [{"status": {"phase": "Running"}}, {"status": {"phase": "Pending"}}, {}, {"status": {"phase": "Running"}}]}`,
	))
	if err != nil || got != 2 {
		t.Errorf("%d pods run, %v; want 2", got, err)
	}
}

func TestLoadBetweenTwoReadings(t *testing.T) {
	at := time.Now()
	before := usage{at: at, cpu: time.Second, heap: 9, calls: 10, wakeups: 100}
	after := usage{at: at.Add(30 * time.Second), cpu: 4 * time.Second, rss: 50, anonymous: 30, heap: 7, calls: 70, wakeups: 400}
	var l Load
	l.between(&before, &after)
	if want := (Load{CPU: 100, RSS: 50, Anonymous: 30, Heap: 7, Calls: 2, Wakeups: 10}); l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
}

func agentReport() *report {
	return &report{
		Machine: "containerd 9",
		Results: []Result{{
			Name: "death", What: "from the end to the start",
			Contenders: []Figures{
				{Name: agentName, Wall: Spread{41, 40, 42}},
				{Name: kubeletName, Wall: Spread{900, 500, 1000}, Ratio: 0.05},
			},
			Targets: []Target{{Text: "milliseconds", Limit: 50, Measured: 41}},
		}},
		Loads: []Load{
			{Agent: agentName, Pods: 110, CPU: 1, RSS: 60},
			{Agent: kubeletName, Pods: 110, CPU: 4, RSS: 120},
			{Agent: agentName, Pods: 110, CPU: 3, RSS: 48, Heap: 14.25, Probed: true},
			{Agent: kubeletName, Pods: 110, CPU: 6, RSS: 120, Probed: true},
		},
	}
}

// TestAgentTargets checks that the agent is compared with the kubelet for the same pods.
func TestAgentTargets(t *testing.T) {
	var got []string
	for _, target := range judgeLoads(agentReport().Loads) {
		got = append(got, target.sentence())
	}
	want := []string{
		"target ≤ 0.33 times the processor time of a kubelet with 110 pods: 0.25, met",
		"target ≤ 0.4 times the memory of a kubelet with 110 pods: 0.5, not met",
		"target ≤ 64 MiB of memory with 110 pods: 60, met",
		"target ≤ 0.33 times the processor time of a kubelet with 110 probed pods: 0.5, not met",
		"target ≤ 0.4 times the memory of a kubelet with 110 probed pods: 0.4, met",
		"target ≤ 64 MiB of memory with 110 probed pods: 48, met",
	}
	if !slices.Equal(got, want) {
		t.Errorf("targets:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAgentPage checks that every figure is on the page.
func TestAgentPage(t *testing.T) {
	r := agentReport()
	r.Targets = judgeLoads(r.Loads)
	page := r.page("make bench-agent", agentMethod)
	for _, want := range []string{
		"| death | podctl agent | 0 | 41.0 |", "900", "0.05×", "110 probed", "4.00", "120.0", "14.2", "≤ 50 milliseconds: 41, met",
		"≤ 0.4 times the memory of a kubelet with 110 probed pods: 0.4, met", "containerd 9",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
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
