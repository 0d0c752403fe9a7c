package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// fakeTree returns a tree of plain directories, one for each list of controllers. With version 2 there is one.
func fakeTree(t *testing.T, lists ...string) *tree {
	t.Helper()
	root := t.TempDir()
	tr := &tree{}
	for _, list := range lists {
		controllers := strings.Split(list, ",")
		dir := filepath.Join(root, strings.ReplaceAll(list, "=", "-"))
		tr.hierarchies = append(tr.hierarchies, hierarchy{dir: dir, controllers: controllers})
		makeDir(t, dir)
	}
	return tr
}

func fakeUnified(t *testing.T, controllers ...string) *tree {
	t.Helper()
	tr := fakeTree(t, "unified")
	tr.unified, tr.hierarchies[0].controllers = true, controllers
	return tr
}

func makeDir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	makeDir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// makeEverywhere creates a cgroup in all hierarchies.
func makeEverywhere(t *testing.T, tr *tree, name string) {
	t.Helper()
	for _, h := range tr.hierarchies {
		makeDir(t, h.at(name))
	}
}

func mountsOf(lines ...string) []*mountinfo.Info {
	var mounts []*mountinfo.Info
	for _, line := range lines {
		fields := strings.Fields(line)
		mounts = append(mounts, &mountinfo.Info{FSType: fields[0], Mountpoint: fields[1], VFSOptions: fields[2]})
	}
	return mounts
}

func TestMountsBecomeATree(t *testing.T) {
	tests := map[string]struct {
		mounts  []*mountinfo.Info
		unified bool
		want    []string
	}{
		"version 1, a controller each": {
			mountsOf("cgroup /c/cpu rw,cpu", "cgroup /c/memory rw,memory"), false, []string{"/c/cpu cpu", "/c/memory memory"},
		},
		"version 1, two controllers in one": {
			mountsOf("cgroup /c/cpu,cpuacct rw,cpu,cpuacct", "cgroup /c/systemd rw,xattr,name=systemd"), false,
			[]string{"/c/cpu,cpuacct cpu,cpuacct", "/c/systemd name=systemd"},
		},
		"version 1 with version 2 beside it": {
			mountsOf("cgroup /c/pids rw,pids", "cgroup2 /c/unified rw,nsdelegate"), false, []string{"/c/pids pids", "/c/unified "},
		},
		"hierarchies that only have names": {
			mountsOf("cgroup /c/a rw,name=a", "cgroup /c/b rw,name=b"), false, []string{"/c/a name=a", "/c/b name=b"},
		},
		"a mount that is bound elsewhere too": {
			mountsOf("cgroup /c/cpu rw,cpu", "cgroup /elsewhere/cpu rw,cpu"), false, []string{"/c/cpu cpu"},
		},
		"version 2": {mountsOf("cgroup2 /c rw,nsdelegate"), true, []string{"/c "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTree(test.mounts)
			if diff := cmp.Diff(test.want, places(tr)); diff != "" || tr.unified != test.unified {
				t.Errorf("unified: %v; hierarchies differ (-want +got):\n%s", tr.unified, diff)
			}
		})
	}
}

// TestUsualMounts checks that mounts in the usual places are found without the mount table, and that none is found if
// one is missing.
func TestUsualMounts(t *testing.T) {
	const v1, v2 = unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC
	own := "3:cpu,cpuacct:/a\n2:name=systemd:/b:c\n0::/b\n"
	tests := map[string]struct {
		fileSystems map[string]int64
		want        []string
	}{
		"version 2": {map[string]int64{"/c": v2}, []string{"cgroup2 /c "}},
		"both": {
			map[string]int64{"/c/cpu,cpuacct": v1, "/c/systemd": v1, "/c/unified": v2},
			[]string{"cgroup /c/cpu,cpuacct cpu,cpuacct", "cgroup /c/systemd name=systemd", "cgroup2 /c/unified "},
		},
		"one is elsewhere":              {map[string]int64{"/c/cpu,cpuacct": v1, "/c/unified": v2}, nil},
		"version 2 may be anywhere":     {map[string]int64{"/c/cpu,cpuacct": v1, "/c/systemd": v1}, nil},
		"a directory without its mount": {map[string]int64{"/c/cpu,cpuacct": v1, "/c/systemd": v1, "/c/unified": v1}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range usualMounts("/c", own, func(path string) int64 { return test.fileSystems[path] }) {
				got = append(got, m.FSType+" "+m.Mountpoint+" "+m.VFSOptions)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestUsualMountsOfThisMachine compares both ways on this machine.
func TestUsualMountsOfThisMachine(t *testing.T) {
	mounts, err := cgroupMounts()
	if err != nil {
		t.Fatal(err)
	}
	table, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(places(newTree(table)), places(newTree(mounts))); diff != "" {
		t.Errorf("(-table of mounts +usual places)\n%s", diff)
	}
}

func places(tr *tree) []string {
	var all []string
	for _, h := range tr.hierarchies {
		all = append(all, h.dir+" "+strings.Join(h.controllers, ","))
	}
	slices.Sort(all)
	return all
}

func TestControllersOfVersion2AreReadFromItsRoot(t *testing.T) {
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "cgroup.controllers"), "cpuset cpu io memory pids\n")
	tr := newTree([]*mountinfo.Info{{FSType: "cgroup2", Mountpoint: root, VFSOptions: "rw"}})
	if !tr.has("memory") || tr.has("hugetlb") || !tr.unified {
		t.Errorf("tree is %+v, want version 2 with memory and without hugetlb", tr)
	}
}

func TestExistsOnVersion1(t *testing.T) {
	tr := fakeTree(t, "cpu,cpuacct", "memory", "freezer", "name=systemd")
	const name = "/kubepods/podu1"
	if tr.remains(name) {
		t.Error("parts of it remain before it is created")
	}
	for _, h := range tr.hierarchies[:3] {
		if tr.exists(name) {
			t.Errorf("it exists before it is created in %s", h.dir)
		}
		makeDir(t, h.at(name))
	}
	if !tr.remains(name) {
		t.Error("no part of it remains without the hierarchy of systemd")
	}
	if tr.exists(name) {
		t.Error("it exists without the hierarchy of systemd, where a kubelet looks")
	}
	makeDir(t, tr.hierarchies[3].at(name))
	if err := os.Remove(tr.hierarchies[2].at(name)); err != nil {
		t.Fatal(err)
	}
	if !tr.exists(name) {
		t.Error("it does not exist for want of freezer, where no kubelet looks")
	}
}

func TestExistsOnVersion2(t *testing.T) {
	tests := map[string]struct {
		root, pod string
		want      bool
	}{
		"all controllers are handed down": {"cpuset cpu io memory hugetlb pids", "cpuset cpu memory hugetlb pids", true},
		"more than are needed":            {"cpu memory", "cpu memory misc", true},
		"one is missing":                  {"cpuset cpu io memory pids", "cpuset cpu pids", false},
		"an unrelated one":                {"cpu io memory rdma", "cpu memory", true},
		"none are handed down":            {"cpu memory", "", false},
		"the machine has none":            {"io rdma", "io rdma", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tr := fakeUnified(t, strings.Fields(test.root)...)
			writeFile(t, filepath.Join(tr.hierarchies[0].at("/kubepods/podu1"), "cgroup.controllers"), test.pod)
			if got := tr.exists("/kubepods/podu1"); got != test.want {
				t.Errorf("exists = %v, want %v", got, test.want)
			}
			if tr.exists("/kubepods/podu2") {
				t.Error("another pod's exists too")
			}
		})
	}
}

// TestSliceWithoutSystemdControllers checks a slice without cpuset: systemd enables a controller that it knows
// only if a unit uses it. Unknown ones (hugetlb), and those that slices use, stay.
func TestSliceWithoutSystemdControllers(t *testing.T) {
	const name = "/kubepods.slice/kubepods-podu1.slice"
	for controllers, want := range map[string]bool{
		"cpu memory hugetlb pids":    true,
		"cpuset cpu memory pids":     false,
		"cpuset memory hugetlb pids": false,
	} {
		tr := fakeUnified(t, "cpuset", "cpu", "io", "memory", "hugetlb", "pids")
		writeFile(t, filepath.Join(tr.hierarchies[0].at(name), "cgroup.controllers"), controllers)
		if got := tr.exists(name); got != want {
			t.Errorf("with %s: exists = %v, want %v", controllers, got, want)
		}
	}
}

func TestNamesThatAreNoPods(t *testing.T) {
	for _, name := range []string{"", "/", "kubepods/podu1", "/kubepods/../..", "/kubepods/", "/kubepods//podu1", "."} {
		if (Machine{}).Exists(name) {
			t.Errorf("cgroup %q exists", name)
		}
		for what, err := range map[string]error{
			"Ensure": (Machine{}).Ensure(name, Resources{}),
			"Remove": (Machine{}).Remove(t.Context(), name),
		} {
			if err == nil || !strings.Contains(err.Error(), "is not the path of a pod's cgroup") {
				t.Errorf("%s(%q): error %v, want one about the path", what, name, err)
			}
		}
	}
}

func TestChildrenAreDirectories(t *testing.T) {
	tr := fakeTree(t, "cpu")
	h := tr.hierarchies[0]
	writeFile(t, filepath.Join(h.at("/kubepods"), "cpu.shares"), "2")
	makeDir(t, h.at("/kubepods/podu1"))
	makeDir(t, h.at("/kubepods/burstable"))
	got, err := h.children("/kubepods")
	if err != nil || !slices.Equal(got, []string{"/kubepods/burstable", "/kubepods/podu1"}) {
		t.Errorf("children are %v (%v)", got, err)
	}
	if got, err := h.children("/missing"); err != nil || len(got) != 0 {
		t.Errorf("children of nothing are %v (%v)", got, err)
	}
}

func TestSurvey(t *testing.T) {
	for name, c := range map[string]struct {
		tree *tree
		want Survey
	}{
		"version 1": {fakeTree(t, "memory", "cpu,cpuacct"), Survey{
			Version:     1,
			Controllers: []string{"cpu", "cpuacct", "memory"},
			Writable:    true,
		}},
		"version 2": {fakeUnified(t, "pids", "memory"), Survey{Version: 2, Controllers: []string{"memory", "pids"}, Writable: true}},
		"not writable": {
			&tree{unified: true, hierarchies: []hierarchy{{dir: "/absent", controllers: []string{"cpu"}}}},
			Survey{Version: 2, Controllers: []string{"cpu"}, Writable: false},
		},
	} {
		if diff := cmp.Diff(c.want, surveyOf(c.tree)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
