package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

const somePod, someID = "/kubepods/podu1", "0123abcd"

// occupied is a container's cgroup in some hierarchies, with a process that ends on request.
type occupied struct {
	*tree
	files []string
	pid   int
	end   func()
}

func newOccupied(t *testing.T, tr *tree, name string) *occupied {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &occupied{tree: tr, pid: cmd.Process.Pid, end: func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}}
	t.Cleanup(o.end)
	for _, h := range tr.hierarchies {
		o.files = append(o.files, h.at(somePod+"/"+name+"/cgroup.procs"))
		writeFile(t, h.at(somePod+"/another/cgroup.procs"), "1\n")
	}
	o.list(t, strconv.Itoa(o.pid)+"\n")
	return o
}

func (o *occupied) list(t *testing.T, text string) {
	t.Helper()
	for _, file := range o.files {
		writeFile(t, file, text)
	}
}

func (o *occupied) find(t *testing.T) *Occupants {
	t.Helper()
	found, ok := o.occupants([]string{"/kubepods/besteffort/podu1", somePod}, someID, o.pid)
	if !ok {
		t.Fatal("its process is not seen")
	}
	t.Cleanup(found.Close)
	return found
}

func TestRemainingOccupants(t *testing.T) {
	names := map[string]string{
		"cgroupfs":            someID,
		"containerd, systemd": "cri-containerd-" + someID + ".scope",
		"CRI-O, systemd":      "crio-" + someID + ".scope",
	}
	for driver, name := range names {
		t.Run(driver, func(t *testing.T) {
			o := newOccupied(t, fakeTree(t, "cpu", "pids"), name)
			found := o.find(t)
			if !found.Left() {
				t.Error("its process is not seen")
			}
			o.list(t, "")
			if !found.Left() {
				t.Error("a process that is not listed any more, and has not ended, is not seen")
			}
			o.end()
			if found.Left() {
				t.Error("a process is left after it has ended")
			}
			writeFile(t, o.files[1], fmt.Sprintln(os.Getpid()))
			if !found.Left() {
				t.Error("a process that came later, in one of two hierarchies, is not seen")
			}
			for _, file := range o.files {
				if err := os.RemoveAll(filepath.Dir(file)); err != nil {
					t.Fatal(err)
				}
			}
			if !found.Left() {
				t.Error("a process that came later and lives is not seen")
			}
		})
	}
}

// TestOccupantsOfNestedCgroups checks cgroups that a container creates itself, for which version 2 reports whether they
// are populated.
func TestOccupantsOfNestedCgroups(t *testing.T) {
	o := newOccupied(t, fakeUnified(t), someID)
	o.list(t, "")
	dir := filepath.Dir(o.files[0])
	below := filepath.Join(dir, "init.scope", "cgroup.procs")
	writeFile(t, below, fmt.Sprintln(o.pid))
	found := o.find(t)
	o.end()
	if !found.Left() {
		t.Error("processes below are not seen")
	}
	writeFile(t, below, "")
	writeFile(t, filepath.Join(dir, "cgroup.events"), "populated 1\nfrozen 0\n")
	if !found.Left() {
		t.Error("a populated cgroup counts as empty")
	}
	writeFile(t, filepath.Join(dir, "cgroup.events"), "populated 0\nfrozen 0\n")
	if found.Left() {
		t.Error("a process is left in empty cgroups")
	}
}

// TestUnknownOccupants checks that there is no result if the first process is not found, and that an unreadable
// cgroup counts as occupied.
func TestUnknownOccupants(t *testing.T) {
	o := newOccupied(t, fakeTree(t, "cpu"), someID)
	for name, c := range map[string]struct {
		pods  []string
		id    string
		first int
	}{
		"another pod":       {[]string{"/kubepods/podu2"}, someID, o.pid},
		"another container": {[]string{somePod}, "4567", o.pid},
		"another process":   {[]string{somePod}, someID, o.pid + 1},
	} {
		if _, ok := o.occupants(c.pods, c.id, c.first); ok {
			t.Errorf("%s: processes are reported", name)
		}
	}
	found := o.find(t)
	o.end()
	o.list(t, "0\n")
	if !found.Left() {
		t.Error("a process of another process namespace counts as none")
	}
	o.list(t, "")
	if !found.Left() {
		t.Error("what could not be known once is known again")
	}
}
