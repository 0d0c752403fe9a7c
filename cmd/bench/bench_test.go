package main

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{4, 1, 3, 2}, Spread{2.5, 1.75, 3.25}},
		{[]float64{5, 1, 100, 2, 3}, Spread{3, 2, 5}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("of %v the spread is %v, want %v", c.values, got, c.want)
		}
	}
}

// TestRatiosCompareTheSameRound checks that a machine that becomes ten times slower in the middle changes no ratio.
func TestRatiosCompareTheSameRound(t *testing.T) {
	w := &workload{contenders: []contender{{name: "podctl"}, {name: floorName}}}
	r := w.summarize([][]sample{
		{{wall: 2 * time.Second}, {wall: time.Second}},
		{{wall: 20 * time.Second}, {wall: 10 * time.Second}},
		{{wall: 6 * time.Second}, {wall: 3 * time.Second}},
	})
	if podctl, floor := r.Contenders[0], r.Contenders[1]; floor.Ratio != 2 || podctl.Wall.Median != 6000 || podctl.Runs != 3 {
		t.Errorf("podctl %+v, floor %+v: want a ratio of 2 and a median of 6 s", podctl, floor)
	}
}

// TestFirstRoundDoesNotCount checks that the warm-up round is ignored.
func TestFirstRoundDoesNotCount(t *testing.T) {
	rounds := 0
	run := func(context.Context) (sample, error) {
		rounds++
		return sample{wall: time.Duration(rounds) * time.Second}, nil
	}
	r, err := (&workload{contenders: []contender{{name: "podctl", run: run}}}).measure(t.Context(), 1)
	if err != nil || r.Contenders[0].Wall.Median != 2000 || rounds != 2 {
		t.Errorf("%+v after %d rounds, %v; want the 2 s of the second round", r, rounds, err)
	}
}

func TestLimits(t *testing.T) {
	r := &Result{Contenders: []Figures{
		{Name: "podctl", Wall: Spread{Median: 100}, CPU: 5},
		{Name: floorName, Ratio: 1.2},
	}}
	for _, c := range []struct {
		name     string
		limit    limit
		measured float64
		met      bool
	}{
		{"a ratio that is kept", limit{against: floorName, factor: 1.25}, 1.2, true},
		{"one that is not", limit{against: floorName, factor: 1.15}, 1.2, false},
		{"a yardstick that was not measured", limit{against: "nobody", factor: 9}, 0, false},
		{"milliseconds", limit{ms: 100}, 100, true},
		{"the processor", limit{cpuShare: 0.1}, 0.05, true},
	} {
		got := c.limit.judge(r)
		if math.Abs(got.Measured-c.measured) > 1e-9 || (got.verdict() == "met") != c.met {
			t.Errorf("%s: measured %v, %s; want %v, met %v", c.name, got.Measured, got.verdict(), c.measured, c.met)
		}
	}
}

// TestPage checks that every figure of the report is on the page.
func TestPage(t *testing.T) {
	r := &report{
		Machine: "containerd 9",
		Results: []Result{{
			Name: "start", What: "a new pod",
			Contenders: []Figures{{Name: "podctl", Wall: Spread{12.34, 11, 13}}, {Name: floorName, Ratio: 1.07}},
			Target:     Target{Against: floorName, Limit: 1.15, Measured: 1.07},
		}},
	}
	page := r.page("make bench", commandMethod)
	for _, want := range []string{"containerd 9", "| start | podctl |", "12.3", "1.07×", "≤ 1.15", "met"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// TestParts checks that a part of the page replaces only the same part of the earlier page.
func TestParts(t *testing.T) {
	page := withPart(withPart("", "make bench", "## One\n"), "make bench-agent", "## Two\n\n")
	page = withPart(page, "make bench", "## Other\n")
	want := "# Benchmarks\n\n<!-- make bench -->\n\n## Other\n\n<!-- end of make bench -->\n" +
		"\n<!-- make bench-agent -->\n\n## Two\n\n<!-- end of make bench-agent -->\n"
	if page != want {
		t.Errorf("the page is\n%s\nwant\n%s", page, want)
	}
}

// TestSummary checks that the summary has the ratios and the targets of a report.
func TestSummary(t *testing.T) {
	r := &report{
		Results: []Result{{
			Name: "start", What: "a new pod; the floor is one call",
			Contenders: []Figures{
				{Name: "podctl"},
				{Name: floorName, Ratio: 1.5},
				{Name: floorSideBySide, Ratio: 1.07},
				{Name: "podman kube play", Ratio: 0.7},
			},
			Target: Target{Against: floorSideBySide, Limit: 1.15, Measured: 1.07},
		}, {
			Name: "plan", What: "a plan", Contenders: []Figures{{Name: "podctl"}},
			Target: Target{Unit: "milliseconds", Limit: 25, Measured: 30},
		}},
		Idle: []Result{
			compared("idle: memory with 110 pods", 0.4, 0.3),
			{Name: "idle: memory with 110 pods", Target: Target{Unit: "MiB", Limit: 64, Measured: 39}},
		},
	}
	want := `| benchmark | floor | crictl | podman | a kubelet | target | |
|---|---|---|---|---|---|---|
| ` + "`start`" + `: a new pod | 1.07× |  | 0.7× |  | ≤ 1.15 | met |
| ` + "`plan`" + `: a plan |  |  |  |  | ≤ 25 milliseconds | 30, not met |
| idle: memory with 110 pods |  |  |  | 0.3× | ≤ 0.4 | met |
| idle: memory with 110 pods |  |  |  |  | ≤ 64 MiB | 39, met |
`
	if got := r.summary(); got != want {
		t.Errorf("the summary is\n%s\nwant\n%s", got, want)
	}
}

// TestDocumentation checks that docs/benchmarks.md gives a reason for each missed target.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, reasons, _ := strings.Cut(string(page), "## Missed targets")
	missed := 0
	for line := range strings.Lines(string(page)) {
		row, found := strings.CutSuffix(strings.TrimSpace(line), "not met |")
		if !found {
			continue
		}
		missed++
		name, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		if workload, _, found := strings.Cut(name, "`: "); found {
			name = workload + "`"
		}
		if !strings.Contains(reasons, "| "+name+" |") {
			t.Errorf("docs/benchmarks.md gives no reason for the missed target of %s", name)
		}
	}
	if missed == 0 {
		t.Error("the tables have no missed target, or were not read")
	}
}
