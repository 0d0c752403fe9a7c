package main

import (
	"context"
	"errors"
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
	w := &workload{}
	r := w.summarize([]contender{{name: "podctl"}, {name: floorName}}, [][]sample{
		{{wall: 2 * time.Second}, {wall: time.Second}},
		{{wall: 20 * time.Second}, {wall: 10 * time.Second}},
		{{wall: 6 * time.Second}, {wall: 3 * time.Second}},
	})
	if podctl, floor := r.Contenders[0], r.Contenders[1]; floor.Ratio != 2 || podctl.Value.Median != 6000 || podctl.Runs != 3 {
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
	begin := func(context.Context) ([]contender, error) { return []contender{{name: "podctl", run: run}}, nil }
	r, err := (&workload{begin: begin}).measure(t.Context(), 1)
	if err != nil || r.Contenders[0].Value.Median != 2000 || rounds != 2 {
		t.Errorf("%+v after %d rounds, %v; want the 2 s of the second round", r, rounds, err)
	}
}

// TestInTurn checks that no step runs after a failed one, and that a nil step does nothing.
func TestInTurn(t *testing.T) {
	var done []string
	step := func(name string, err error) step {
		return func(context.Context) error { done = append(done, name); return err }
	}
	err := inTurn(step("a", nil), nil, step("b", context.Canceled), step("c", nil))(t.Context())
	if !errors.Is(err, context.Canceled) || strings.Join(done, "") != "ab" {
		t.Errorf("%v ran, and the error is %v", done, err)
	}
}

func TestTargets(t *testing.T) {
	contenders := []Figures{
		{Name: "podctl", Value: Spread{Median: 100}, CPU: 5},
		{Name: floorName, Ratio: 1.2},
	}
	for _, c := range []struct {
		name     string
		target   Target
		measured float64
		met      bool
	}{
		{"a ratio that is kept", Target{Against: floorName, Limit: 1.25}, 1.2, true},
		{"one that is not", Target{Against: floorName, Limit: 1.15}, 1.2, false},
		{"a yardstick that was not measured", Target{Against: "nobody", Limit: 9}, 0, false},
		{"milliseconds", Target{Unit: inMilliseconds, Limit: 100}, 100, true},
		{"the processor", Target{Unit: ofOneProcessor, Limit: 0.1}, 0.05, true},
	} {
		got := c.target
		got.measure(contenders)
		if math.Abs(got.Measured-c.measured) > 1e-9 || strings.Contains(got.cells(), "not met") == c.met {
			t.Errorf("%s: measured %v, %s; want %v, met %v", c.name, got.Measured, got.cells(), c.measured, c.met)
		}
	}
}

// TestTables checks that every figure is in the table, also one without a target.
func TestTables(t *testing.T) {
	table := tables("make bench", "containerd 9", []Result{{
		Name: "start", What: "a new pod",
		Contenders: []Figures{{Name: "podctl", Value: Spread{12.34, 11, 13}, CPU: 7}, {Name: floorName, Ratio: 1.07}},
	}})
	for _, want := range []string{"containerd 9", "| start | podctl | 0 | 12.3 | 11.0-13.0 | 7.0 |", "|  | floor |", "1.07×"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

// TestParts checks that a part of the page replaces only the same part of the earlier page.
func TestParts(t *testing.T) {
	const page = "# Benchmarks\n\n<!-- make bench -->\n\n## One\n\n<!-- end of make bench -->\n" +
		"\n<!-- make bench-agent -->\n\n## Two\n\n<!-- end of make bench-agent -->\n"
	got, err := withPart(page, "make bench", "## Other\n\n")
	if want := strings.Replace(page, "One", "Other", 1); err != nil || got != want {
		t.Errorf("the page is\n%s\n%v, want\n%s", got, err, want)
	}
	if _, err = withPart(page, "make other", ""); err == nil {
		t.Error("a part is added to a page that does not have it")
	}
}

// TestSummary checks that the summary has the ratios and the targets.
func TestSummary(t *testing.T) {
	results := []Result{{
		Name: "start", What: "a new pod; the floor is one call",
		Contenders: []Figures{
			{Name: "podctl"},
			{Name: floorName, Ratio: 1.07},
			{Name: "podman kube play", Ratio: 0.7},
		},
		Target: Target{Against: floorName, Limit: 1.15, Measured: 1.07},
	}, {
		Name: "plan", What: "a plan", Contenders: []Figures{{Name: "podctl"}},
		Target: Target{Unit: inMilliseconds, Limit: 25, Measured: 30},
	}, {
		Name: "without a target", Contenders: []Figures{{Name: "podctl"}},
	}}
	want := `| benchmark | floor | crictl | podman | a kubelet | target | |
|---|---|---|---|---|---|---|
| ` + "`start`" + `: a new pod; the floor is one call | 1.07× |  | 0.7× |  | ≤ 1.15 | met |
| ` + "`plan`" + `: a plan |  |  |  |  | ≤ 25 milliseconds | 30, not met |
`
	if got := summary(results); got != want {
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
