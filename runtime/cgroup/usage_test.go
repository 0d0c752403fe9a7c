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
			"pids.current": "3\n", "memory.swap.current": "7\n", "cpu.pressure": "damaged\n\n",
			"io.pressure": "some avg10=1.50 avg60=2.00 avg300=x total=9\nfull avg10=0.50 total=-1\n",
		}, Usage{
			CPUPressure: &Pressure{},
			IOPressure:  &Pressure{Some: Stall{Total: 9, Avg10: 1.5, Avg60: 2}, Full: Stall{Avg10: 0.5}},
			CPU:         n(5000), Memory: n(1000), WorkingSet: n(600), RSS: n(500), Swap: n(7), PageFaults: n(8), MajorPageFaults: n(9),
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
		if diff := cmp.Diff(c.want, usageIn(tr, "/")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	none := usageIn(fakeTree(t, "cpu"), "/a")
	if diff := cmp.Diff(Usage{}, none); diff != "" {
		t.Errorf("without a cgroup: %s", diff)
	}
}

// TestDetails checks the files of both versions.
func TestDetails(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	one := fakeTree(t, "cpu,cpuacct", "memory", "pids", "blkio")
	for file, text := range map[string]string{
		"cpu,cpuacct/a/cpuacct.stat": "user 3\nsystem 5\n", "cpu,cpuacct/a/cpu.shares": "51\n",
		"cpu,cpuacct/a/cpu.cfs_period_us": "100000\n", "cpu,cpuacct/a/cpu.cfs_quota_us": "50000\n",
		"cpu,cpuacct/a/cpu.stat":                            "nr_periods 7\nnr_throttled 2\nthrottled_time 900\nnr_bursts 1\nburst_time 4\n",
		"memory/a/memory.stat":                              "cache 1\ntotal_cache 11\ntotal_mapped_file 12\ntotal_active_file 13\ntotal_inactive_file 14\n",
		"memory/a/memory.kmem.usage_in_bytes":               "15\n",
		"memory/a/memory.max_usage_in_bytes":                "16\n",
		"memory/a/memory.failcnt":                           "17\n",
		"memory/a/memory.oom_control":                       "oom_kill_disable 0\nunder_oom 0\noom_kill 18\n",
		"memory/a/memory.soft_limit_in_bytes":               "9223372036854771712\n",
		"memory/a/memory.memsw.limit_in_bytes":              "19\n",
		"memory/a/cgroup.procs":                             "10\n11\n",
		"pids/a/pids.current":                               "20\n",
		"pids/a/pids.max":                                   "max\n",
		"blkio/a/blkio.throttle.io_serviced_recursive":      "254:0 Read 2\n254:0 Write 3\n254:0 Total 5\nTotal 5\n",
		"blkio/a/blkio.throttle.io_service_bytes_recursive": "254:0 Read 4096\n254:0 Write x\n8:0 Read 1\n",
	} {
		writeFile(t, filepath.Join(filepath.Dir(one.hierarchies[0].dir), file), text)
	}
	want := Details{
		Usage: Usage{SwapLimit: n(19), Processes: n(20)},
		User:  n(3e7), System: n(5e7), Shares: n(51), Period: n(100000), Quota: n(50000), Periods: n(7), ThrottledPeriods: n(2),
		ThrottledTime: n(900), BurstPeriods: n(1), BurstTime: n(4), Cache: n(11), MappedFile: n(12), ActiveFile: n(13),
		InactiveFile: n(14), KernelMemory: n(15), MaxMemory: n(16), MemoryFailures: n(17), OOM: n(18),
		Threads: n(20), Members: n(2), Disks: []DiskIO{{"254:0", 4096, 0, 2, 3}, {"8:0", 1, 0, 0, 0}},
	}
	if diff := cmp.Diff(want, detailsIn(one, "/a")); diff != "" {
		t.Errorf("version 1 (-want +got):\n%s", diff)
	}
	two := fakeUnified(t, "cpu", "memory", "pids", "io")
	for file, text := range map[string]string{
		"cpu.stat": "usage_usec 9\nuser_usec 3\nsystem_usec 5\nnr_periods 7\nnr_throttled 2\nthrottled_usec 9\nnr_bursts 1\nburst_usec 4\n",
		"cpu.max":  "50000 100000\n", "cpu.weight": "2\n", "memory.current": "1000\n", "memory.peak": "16\n",
		"memory.stat": "file 11\nfile_mapped 12\nactive_file 13\ninactive_file 14\nkernel 15\n", "memory.low": "0\n",
		"memory.events": "low 0\nmax 17\noom_kill 18\n", "memory.swap.max": "19\n", "pids.current": "20\n", "pids.max": "21\n",
		"io.stat": "254:0 rbytes=4096 wbytes=512 rios=2 wios=3 dbytes=0\n8:0\n", "cgroup.procs": "10\n",
	} {
		writeFile(t, filepath.Join(two.hierarchies[0].dir, "a", file), text)
	}
	want.Usage = Usage{CPU: n(9000), Memory: n(1000), WorkingSet: n(986), SwapLimit: n(19), Processes: n(20)}
	want.User, want.System, want.Shares, want.ThrottledTime, want.BurstTime = n(3000), n(5000), n(28), n(9000), n(4000)
	want.ThreadsMax, want.Members, want.Disks = n(21), n(1), []DiskIO{{"254:0", 4096, 512, 2, 3}}
	if diff := cmp.Diff(want, detailsIn(two, "/a")); diff != "" {
		t.Errorf("version 2 (-want +got):\n%s", diff)
	}
	writeFile(t, filepath.Join(two.hierarchies[0].dir, "a", "cpu.max"), "max 100000\n")
	if got := detailsIn(two, "/a"); got.Quota != nil || got.Periods != nil || *got.Period != 100000 {
		t.Errorf("without a limit: %+v", got)
	}
	if diff := cmp.Diff(Details{}, detailsIn(two, "/gone")); diff != "" {
		t.Errorf("gone: %s", diff)
	}
}
