package cgroup

import (
	"path/filepath"
	"testing"
)

// TestWorkingSet checks that inactive file memory does not count, and that the topmost cgroup of version 2 has no
// total.
func TestWorkingSet(t *testing.T) {
	for name, c := range map[string]struct {
		unified bool
		usage   string
		stat    string
		want    int64
	}{
		"version 1":                    {false, "1000\n", "cache 600\ninactive_file 1\ntotal_inactive_file 300\n", 700},
		"version 1, less than that":    {false, "1000\n", "total_inactive_file 3000\n", 0},
		"version 2":                    {true, "1000\n", "anon 500\nfile 500\ninactive_file 400\n", 600},
		"version 2, the topmost":       {true, "", "anon 500\nfile 600\ninactive_file 200\n", 900},
		"version 1, damaged":           {false, "many\n", "", -1},
		"version 1, without its files": {false, "", "", -1},
	} {
		tr, file := fakeTree(t, "cpu", "memory"), "memory.usage_in_bytes"
		if c.unified {
			tr, file = fakeUnified(t, "cpu", "memory"), "memory.current"
		}
		h, _ := tr.find("memory")
		if c.usage != "" {
			writeFile(t, filepath.Join(h.dir, file), c.usage)
		}
		if c.stat != "" {
			writeFile(t, filepath.Join(h.dir, "memory.stat"), c.stat)
		}
		got, err := workingSet(tr, "/")
		if (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%s: %d %v, want %d", name, got, err, c.want)
		}
	}
	if got, err := workingSet(fakeTree(t, "cpu"), "/"); err == nil {
		t.Errorf("without cgroups of memory: %d", got)
	}
}
