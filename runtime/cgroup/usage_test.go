package cgroup

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUsage checks the files of both versions: inactive file memory is not in the working set, a limit may be missing,
// and the topmost cgroup of version 2 has no total.
func TestUsage(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	for name, c := range map[string]struct {
		unified bool
		files   map[string]string
		want    Usage
	}{
		"version 1": {false, map[string]string{
			"cpuacct/cpuacct.usage": "5000\n", "memory/memory.usage_in_bytes": "1000\n", "pids/pids.current": "3\n",
			"memory/memory.limit_in_bytes": "9000\n",
			"memory/memory.stat": "cache 600\ninactive_file 1\ntotal_inactive_file 300\ntotal_rss 400\ntotal_swap 7\n" +
				"total_pgfault 8\ntotal_pgmajfault 9\n",
		}, Usage{
			CPU: n(5000), Memory: n(1000), Limit: n(9000), WorkingSet: n(700), RSS: n(400), Swap: n(7),
			PageFaults: n(8), MajorPageFaults: n(9), Processes: n(3),
		}},
		"version 1, no limit and little usage": {false, map[string]string{
			"memory/memory.usage_in_bytes": "1000\n", "memory/memory.limit_in_bytes": "9223372036854771712\n",
			"memory/memory.stat": "total_inactive_file 3000\n",
		}, Usage{Memory: n(1000), WorkingSet: n(0)}},
		"version 1, damaged": {false, map[string]string{
			"cpuacct/cpuacct.usage": "-5\n", "memory/memory.usage_in_bytes": "many\n", "memory/memory.stat": "\n\ntotal_rss\n",
		}, Usage{}},
		"version 1, without its files": {false, nil, Usage{}},
		"version 2": {true, map[string]string{
			"cpu.stat": "usage_usec 5\nuser_usec 3\n", "memory.current": "1000\n", "memory.max": "max\n",
			"memory.stat":  "anon 500\nfile 500\ninactive_file 400\npgfault 8\npgmajfault 9\n",
			"pids.current": "3\n", "memory.swap.current": "7\n",
		}, Usage{
			CPU: n(5000), Memory: n(1000), WorkingSet: n(600), RSS: n(500), Swap: n(7), PageFaults: n(8), MajorPageFaults: n(9),
			Processes: n(3),
		}},
		"version 2, the topmost": {true, map[string]string{
			"cpu.stat": "usage_usec 5\n", "memory.stat": "anon 500\nfile 600\ninactive_file 200\n",
		}, Usage{CPU: n(5000), Memory: n(1100), WorkingSet: n(900), RSS: n(500)}},
	} {
		tr := fakeTree(t, "cpuacct", "memory", "pids")
		if c.unified {
			tr = fakeUnified(t, "cpu", "memory", "pids")
		}
		for file, text := range c.files {
			controller, below := filepath.Split(file)
			if controller == "" {
				controller = "memory"
			}
			h, found := tr.find(filepath.Clean(controller))
			if !found {
				t.Fatalf("no %s", controller)
			}
			writeFile(t, filepath.Join(h.dir, below), text)
		}
		if diff := cmp.Diff(c.want, usageIn(tr, func(h hierarchy) string { return h.at("/") })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	none := usageIn(fakeTree(t, "cpu"), func(hierarchy) string { return "" })
	if diff := cmp.Diff(Usage{}, none); diff != "" {
		t.Errorf("without a cgroup: %s", diff)
	}
}
