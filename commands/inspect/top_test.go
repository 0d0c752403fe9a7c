package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

// used are two pods: one small one that restarts, one large one beside a sidecar.
func used() []runtimesession.PodUsage {
	return []runtimesession.PodUsage{
		{Pod: model.PodRef{Namespace: "b", Name: "small"}, Containers: []runtimesession.ContainerUsage{
			{Name: "app", Type: podspec.Regular, Restarts: 4},
		}},
		{Pod: model.PodRef{Namespace: "a", Name: "large"}, Containers: []runtimesession.ContainerUsage{
			{Name: "proxy", Type: podspec.Sidecar, Running: true, Restarts: 7, NanoCores: new(uint64(1)), WorkingSet: new(uint64(20 << 20))},
			{Name: "app", Type: podspec.Regular, Running: true, NanoCores: new(uint64(11_000_001)), WorkingSet: new(uint64(14<<20 + 5))},
		}},
	}
}

func TestTopTables(t *testing.T) {
	for name, c := range map[string]struct {
		options topOptions
		want    []string
	}{
		"pods by name": {topOptions{}, []string{
			"POD CPU(cores) MEMORY(bytes) RESTARTS", "large 12m 34Mi 0", "small - - 4",
		}},
		"containers by cpu": {topOptions{sortBy: "cpu", view: usageView{containers: true, namespaces: true}}, []string{
			"NAMESPACE POD CONTAINER CPU(cores) MEMORY(bytes) RESTARTS", "a large app 12m 14Mi 0", "a large proxy 1m 20Mi 7", "b small app - - 4",
		}},
		"containers by memory": {topOptions{sortBy: "memory", view: usageView{containers: true}}, []string{
			"POD CONTAINER CPU(cores) MEMORY(bytes) RESTARTS", "large proxy 1m 20Mi 7", "large app 12m 14Mi 0", "small app - - 4",
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
