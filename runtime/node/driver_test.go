package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsualDriver checks that systemd manages cgroup v2 if it runs.
func TestUsualDriver(t *testing.T) {
	const version2, systemd = "sys/fs/cgroup/cgroup.controllers", "run/systemd/system/x"
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"cgroup v2 and systemd":                {[]string{version2, systemd}, Systemd},
		"cgroup v2 without systemd":            {[]string{version2}, Cgroupfs},
		"cgroup v1 and systemd":                {[]string{"sys/fs/cgroup/cpu/x", systemd}, Cgroupfs},
		"cgroup v2 beside version 1 (hybrid)":  {[]string{"sys/fs/cgroup/unified/cgroup.controllers", systemd}, Cgroupfs},
		"nothing, as in a container of no use": {nil, Cgroupfs},
	} {
		root := t.TempDir()
		for _, file := range c.files {
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := usualDriver(root); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCgroupDriverOfNodeIsKept checks that the driver of an existing node does not change, because the names of cgroups
// depend on it.
func TestCgroupDriverOfNodeIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		asked       string
		before      *process
		want, error string
	}{
		"a new node":                      {Cgroupfs, nil, Cgroupfs, ""},
		"as before":                       {"", &process{CgroupDriver: Systemd}, Systemd, ""},
		"the same":                        {Systemd, &process{CgroupDriver: Systemd}, Systemd, ""},
		"another":                         {Cgroupfs, &process{CgroupDriver: Systemd}, "", "take it down first"},
		"of a podctl that had only one":   {"", &process{}, Cgroupfs, ""},
		"another than the only one there": {Systemd, &process{}, "", "take it down first"},
	} {
		err := checkDriver(c.asked, c.before)
		if c.error != "" {
			if err == nil || !strings.Contains(err.Error(), c.error) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if o := (&Options{CgroupDriver: c.asked}).asBefore(c.before); err != nil || o.CgroupDriver != c.want {
			t.Errorf("%s: %q %v, want %q", name, o.CgroupDriver, err, c.want)
		}
	}
}
