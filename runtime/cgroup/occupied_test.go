package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

const somePod, someID = "/kubepods/podu1", "0123abcd"

func TestOccupiedByAContainer(t *testing.T) {
	names := map[string]string{"cgroupfs": someID, "containerd, systemd": "cri-containerd-" + someID + ".scope", "CRI-O, systemd": "crio-" + someID + ".scope"}
	for driver, name := range names {
		t.Run(driver, func(t *testing.T) {
			tr := fakeTree(t, "cpu", "pids")
			for _, h := range tr.hierarchies {
				writeFile(t, h.at(somePod+"/"+name+"/cgroup.procs"), "17\n")
				writeFile(t, h.at(somePod+"/another/cgroup.procs"), "18\n")
			}
			left := tr.occupied([]string{"/kubepods/besteffort/podu1", somePod}, someID)
			if left == nil || !left() {
				t.Fatal("its process is not seen")
			}
			first, second := tr.hierarchies[0].at(somePod+"/"+name), tr.hierarchies[1].at(somePod+"/"+name)
			writeFile(t, filepath.Join(first, "cgroup.procs"), "")
			if !left() {
				t.Error("a process in one of two hierarchies is not seen")
			}
			if err := os.RemoveAll(second); err != nil {
				t.Fatal(err)
			}
			if left() {
				t.Error("processes are left in an empty cgroup, or in one that is gone")
			}
		})
	}
}

// TestOccupiedBelow: a container may make cgroups of its own.
func TestOccupiedBelow(t *testing.T) {
	tr := fakeUnified(t)
	below := tr.hierarchies[0].at(somePod + "/" + someID + "/init.scope/cgroup.procs")
	writeFile(t, tr.hierarchies[0].at(somePod+"/"+someID+"/cgroup.procs"), "")
	writeFile(t, below, "17\n")
	left := tr.occupied([]string{somePod}, someID)
	if left == nil || !left() {
		t.Fatal("a process below is not seen")
	}
	writeFile(t, below, "")
	if left() {
		t.Error("a process is left in empty cgroups")
	}
}

// TestOccupiedCannotBeTold: of what is not seen at first nothing is said, and what cannot
// be read counts as occupied.
func TestOccupiedCannotBeTold(t *testing.T) {
	tr := fakeTree(t, "cpu")
	if tr.occupied([]string{somePod}, someID) != nil {
		t.Error("something is said of a cgroup that is not there")
	}
	procs := tr.hierarchies[0].at(somePod + "/" + someID + "/cgroup.procs")
	writeFile(t, procs, "")
	if tr.occupied([]string{somePod}, someID) != nil {
		t.Error("something is said of a cgroup without a process")
	}
	if err := os.Remove(procs); err != nil {
		t.Fatal(err)
	}
	makeDir(t, procs)
	if left := tr.occupied([]string{somePod}, someID); left == nil || !left() {
		t.Error("what cannot be read counts as empty")
	}
}
