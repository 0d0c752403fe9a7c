package main

import (
	"slices"
	"strings"
	"testing"
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

func agentReport() *report {
	return &report{
		Machine: "containerd 9",
		Results: []Result{{
			Name: "death", What: "from the end to the start",
			Contenders: []Figures{
				{Name: agentName, Wall: Spread{41, 40, 42}},
				{Name: kubeletName, Wall: Spread{900, 500, 1000}, Ratio: 0.05},
			},
			Target: Target{Unit: "milliseconds", Limit: 50, Measured: 41},
		}},
		Loads: []Load{
			{Agent: agentName, Pods: 110, CPU: 1, RSS: 60},
			{Agent: kubeletName, Pods: 110, CPU: 4, RSS: 120},
			{Agent: agentName, Pods: 110, CPU: 3, RSS: 48, Anonymous: 14.25, Probed: true},
			{Agent: kubeletName, Pods: 110, CPU: 6, RSS: 120, Probed: true},
		},
	}
}

// TestAgentTargets checks that the agent is compared with the kubelet for the same pods.
func TestAgentTargets(t *testing.T) {
	var got []string
	for _, r := range judgeLoads(agentReport().Loads) {
		got = append(got, r.Name+": "+r.Target.sentence())
	}
	want := []string{
		"idle: processor time with 110 pods: target ≤ 0.33 times a kubelet: 0.25, met",
		"idle: memory with 110 pods: target ≤ 0.4 times a kubelet: 0.5, not met",
		"idle: memory with 110 pods: target ≤ 64 MiB: 60, met",
		"idle: processor time with 110 probed pods: target ≤ 0.33 times a kubelet: 0.5, not met",
		"idle: memory with 110 probed pods: target ≤ 0.4 times a kubelet: 0.4, met",
		"idle: memory with 110 probed pods: target ≤ 64 MiB: 48, met",
	}
	if !slices.Equal(got, want) {
		t.Errorf("targets:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAgentPage checks that every figure is on the page.
func TestAgentPage(t *testing.T) {
	r := agentReport()
	r.Idle = judgeLoads(r.Loads)
	page := r.page("make bench-agent", agentMethod)
	for _, want := range []string{
		"| death | podctl agent | 0 | 41.0 |", "900", "0.05×", "110 probed", "4.00", "120.0", "14.2", "≤ 50 milliseconds: 41, met",
		"memory with 110 probed pods: target ≤ 0.4 times a kubelet: 0.4, met", "containerd 9",
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
