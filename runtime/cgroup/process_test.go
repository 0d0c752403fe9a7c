package cgroup

import (
	"testing"
)

// TestGroupOf checks in which cgroup a process is counted, for both versions.
func TestGroupOf(t *testing.T) {
	for name, c := range map[string]struct {
		unified bool
		names   map[string]string
		want    string
	}{
		"version 2":                           {true, map[string]string{"": "/unit"}, "/unit"},
		"version 2, topmost":                  {true, map[string]string{"": "/"}, ""},
		"version 2, outside of the namespace": {true, map[string]string{"": "/../unit"}, ""},
		"version 2, gone":                     {true, map[string]string{"": "/gone"}, ""},
		"version 1":                           {false, map[string]string{"memory": "/unit", "cpuacct": "/unit"}, "/unit"},
		"version 1, two cgroups":              {false, map[string]string{"memory": "/unit", "cpuacct": "/unit2"}, ""},
		"version 1, the unit is not counted": {
			false, map[string]string{"memory": "/unit2", "cpuacct": "/unit2", "name=systemd": "/gone"}, "",
		},
		"version 1, systemd": {
			false, map[string]string{"memory": "/unit", "cpuacct": "/unit", "name=systemd": "/unit"}, "/unit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := fakeTree(t, "cpuacct", "memory")
			if c.unified {
				tr = fakeUnified(t, "cpu", "memory")
			}
			makeEverywhere(t, tr, "/unit")
			makeEverywhere(t, tr, "/unit2")
			got, err := groupOf(tr, c.names)
			if got.Name != c.want || (err == nil) != (c.want != "") || got.Changed.IsZero() != (c.want == "") {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}
