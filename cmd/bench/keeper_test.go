package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	if got, err := numbers("1,10,50"); err != nil || !slices.Equal(got, []int{1, 10, 50}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, list := range []string{"", "1,,2", "0", "5,5", "9,3"} {
		if got, err := numbers(list); err == nil {
			t.Errorf("%q is read as %v", list, got)
		}
	}
}

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
	got, err := runningPods([]byte(`{"items": [{"status": {"phase": "Running"}}, {"status": {"phase": "Pending"}}, {}, {"status": {"phase": "Running"}}]}`))
	if err != nil || got != 2 {
		t.Errorf("%d pods run, %v; want 2", got, err)
	}
}

func TestLoadBetweenTwoLooks(t *testing.T) {
	at := time.Now()
	before := usage{at: at, own: time.Second, runtime: time.Second, heap: 9, calls: 10, wakeups: 100, written: 1 << 20}
	after := usage{at: at.Add(30 * time.Second), own: 4 * time.Second, runtime: 2500 * time.Millisecond, rss: 50, anonymous: 30, heap: 7, binary: 36, calls: 70, wakeups: 400, written: 3 << 20}
	var l Load
	l.between(&before, &after)
	if want := (Load{CPU: 100, RuntimeCPU: 50, RSS: 50, Anonymous: 30, Heap: 7, Binary: 36, Calls: 2, Wakeups: 10, Written: 4096}); l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
}

func keeperReport() *KeeperReport {
	return &KeeperReport{
		Machine: Machine{CPUs: 2, Runtime: "containerd 9", Kubelet: "Kubernetes 7"},
		Workloads: []Result{{
			Name: "death", What: "from the end to the start",
			Contenders: []Figures{{Name: agentName, Wall: Spread{41, 40, 42}}, {Name: eventName, Wall: Spread{33, 30, 35}}, {Name: kubeletName, Wall: Spread{900, 500, 1000}, Ratio: 0.05}},
			Targets:    []Target{{Text: "milliseconds", Limit: 50, Measured: 41, Met: true}},
		}},
		Loads: []Load{
			{Keeper: agentName, Pods: 1, CPU: 9, RSS: 9},
			{Keeper: kubeletName, Pods: 1, CPU: 1, RSS: 1},
			{Keeper: agentName, Pods: 110, CPU: 1, RSS: 60, Heap: 14, Binary: 36},
			{Keeper: kubeletName, Pods: 110, CPU: 4, RSS: 120},
			{Keeper: agentName, Pods: 110, CPU: 3, RSS: 48, Heap: 14.25, Binary: 36, Probed: true},
			{Keeper: kubeletName, Pods: 110, CPU: 6, RSS: 120, Probed: true},
		},
	}
}

// TestKeeperTargets: only what is used with most pods is judged, beside the kubelet with the same pods.
func TestKeeperTargets(t *testing.T) {
	r := keeperReport()
	r.judge()
	var got []string
	for _, target := range r.Targets {
		got = append(got, target.sentence())
	}
	want := []string{
		"target ≤ 0.33 times the processor's time of a kubelet with 110 pods: 0.25, met",
		"target ≤ 0.4 times the memory of a kubelet with 110 pods: 0.5, not met",
		"target ≤ 64 MiB of memory with 110 pods: 60, met",
		"target ≤ 1.1 times its heap and its binary with 110 pods: 1.2, not met",
		"target ≤ 0.33 times the processor's time of a kubelet with 110 pods that are probed: 0.5, not met",
		"target ≤ 0.4 times the memory of a kubelet with 110 pods that are probed: 0.4, met",
		"target ≤ 64 MiB of memory with 110 pods that are probed: 48, met",
		"target ≤ 1.1 times its heap and its binary with 110 pods that are probed: 0.955, met",
	}
	if !slices.Equal(got, want) {
		t.Errorf("targets:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestKeeperReport: every figure is on the page.
func TestKeeperReport(t *testing.T) {
	r := keeperReport()
	for _, want := range []string{"death", "41", "900", "0.05×", "110 probed", "4.00", "120.0", "14.0", "≤ 50 milliseconds: 41, met"} {
		if text := r.page(); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if page := r.page(); !strings.Contains(page, eventName+" comes after 33 ms (") || !strings.Contains(page, "| death | 41 (") {
		t.Errorf("the page:\n%s", page)
	}
	if page := r.page(); !strings.Contains(page, "containerd 9") || !strings.Contains(page, "Kubernetes 7.") {
		t.Errorf("the page does not say what was measured:\n%s", page)
	}
}

// TestShapeOfProbedPods: three probes in ten seconds.
func TestShapeOfProbedPods(t *testing.T) {
	manifest := shape{containers: 1, probed: true}.manifest("p")
	for _, want := range []string{"livenessProbe: {periodSeconds: 10,", "readinessProbe: {periodSeconds: 5,", "args: [serve"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the manifest lacks %q:\n%s", want, manifest)
		}
	}
}
