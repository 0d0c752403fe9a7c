package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

// used returns the usage of two pods: a small one that restarts, and a large one with a sidecar.
func used() []runtimesession.PodUsage {
	return []runtimesession.PodUsage{
		{Pod: model.PodRef{Namespace: "b", Name: "small"}, Containers: []runtimesession.ContainerUsage{
			{Name: "app", Type: podspec.Regular, Restarts: 4},
		}},
		{Pod: model.PodRef{Namespace: "a", Name: "large"}, Containers: []runtimesession.ContainerUsage{
			{
				Name: "proxy", Type: podspec.Sidecar, Running: true, Restarts: 7, NanoCores: new(uint64(1)),
				WorkingSet: new(uint64(20 << 20)),
			},
			{
				Name: "app", Type: podspec.Regular, Running: true, NanoCores: new(uint64(11_000_001)),
				WorkingSet: new(uint64(14<<20 + 5)),
				Limits:     runtimesession.Limits{NanoCores: new(uint64(50_000_000)), Memory: new(uint64(28 << 20))},
			},
		}, Limits: runtimesession.Limits{Memory: new(uint64(68 << 20))}},
	}
}

func TestTopTables(t *testing.T) {
	for name, c := range map[string]struct {
		options topOptions
		want    []string
	}{
		"pods by name": {topOptions{}, []string{
			"POD CPU(cores) MEMORY(bytes) RESTARTS CPU-LIMIT CPU% MEMORY-LIMIT MEMORY%",
			"large 12m 34Mi 0 - - 68Mi 50%", "small - - 4 - - - -",
		}},
		"containers by cpu": {topOptions{sortBy: "cpu", view: usageView{containers: true, namespaces: true}}, []string{
			"NAMESPACE POD CONTAINER CPU(cores) MEMORY(bytes) RESTARTS CPU-LIMIT CPU% MEMORY-LIMIT MEMORY%",
			"a large app 12m 14Mi 0 50m 22% 28Mi 50%", "a large proxy 1m 20Mi 7 - - - -",
			"b small app - - 4 - - - -",
		}},
		"containers by memory": {topOptions{sortBy: "memory", view: usageView{containers: true}}, []string{
			"POD CONTAINER CPU(cores) MEMORY(bytes) RESTARTS CPU-LIMIT CPU% MEMORY-LIMIT MEMORY%",
			"large proxy 1m 20Mi 7 - - - -", "large app 12m 14Mi 0 50m 22% 28Mi 50%", "small app - - 4 - - - -",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			usage := used()
			c.options.sort(usage)
			var got []string
			for _, row := range append([][]string{c.options.view.header()}, c.options.view.rows(usage)...) {
				got = append(got, strings.Join(row, " "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHistories: a history has the last historySize samples, scaled to the limit or to the highest value. Containers
// that no longer exist are removed.
func TestHistories(t *testing.T) {
	h := newUsageHistory()
	v := usageView{containers: true, history: h}
	usage := used()
	for i := range historySize + 3 {
		*usage[1].Containers[0].NanoCores = uint64(i) * 1_000_000
		h.add(usage)
	}
	rows := v.rows(usage)
	bars := []rune(rows[1][len(rows[1])-2])
	if len(bars) != historySize || bars[historySize-1] != '█' || bars[0] != '▁' {
		t.Errorf("the processor of a container without a limit: %q", string(bars))
	}
	if cell := rows[2][len(rows[2])-1]; cell != strings.Repeat("▄", historySize) {
		t.Errorf("the memory of a container that uses half of its limit: %q", cell)
	}
	h.add(usage[:1])
	if len(h.cpu) != 2 {
		t.Errorf("%d histories", len(h.cpu))
	}
}

// TestTopFitsNarrowTerminals: on a narrow terminal, the least important columns are dropped, and the usage columns
// remain.
func TestTopFitsNarrowTerminals(t *testing.T) {
	v := usageView{history: newUsageHistory()}
	for width, want := range map[int]string{
		200: "POD CPU(cores) MEMORY(bytes) RESTARTS CPU-LIMIT CPU% MEMORY-LIMIT MEMORY% CPU-HISTORY MEMORY-HISTORY",
		80:  "POD CPU(cores) MEMORY(bytes) CPU% MEMORY% CPU-HISTORY",
		35:  "POD CPU(cores) MEMORY(bytes)",
		5:   "POD CPU(cores) MEMORY(bytes)",
	} {
		header, rows := fitting(v.header(), [][]string{
			{"web", "1m", "2Mi", "0", "500m", "1%", "64Mi", "3%", history([]uint64{1}, nil), history([]uint64{2}, nil)},
		}, width)
		if got := strings.Join(header, " "); got != want || len(rows[0]) != len(header) {
			t.Errorf("%d columns: %s, %q; want %s", width, got, rows, want)
		}
	}
}
