package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRemovalTakesEveryHierarchy(t *testing.T) {
	tr := fakeTree(t, "cpu", "memory", "freezer", "name=systemd")
	makeEverywhere(t, tr, "/kubepods/podu1/container/nested")
	makeEverywhere(t, tr, "/kubepods/podu2")
	if err := os.RemoveAll(tr.hierarchies[1].at("/kubepods/podu1")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := tr.remove(t.Context(), "/kubepods/podu1", nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range tr.hierarchies {
		if _, err := os.Stat(h.at("/kubepods/podu1")); err == nil {
			t.Errorf("%s is still there", h.at("/kubepods/podu1"))
		}
		if _, err := os.Stat(h.at("/kubepods/podu2")); err != nil {
			t.Errorf("the other pod's: %v", err)
		}
	}
}

func TestNothingIsRemovedWhileProcessesRun(t *testing.T) {
	tr := fakeTree(t, "cpu", "memory")
	makeEverywhere(t, tr, "/kubepods/podu1/a")
	makeEverywhere(t, tr, "/kubepods/podu1/b")
	writeFile(t, filepath.Join(tr.hierarchies[1].at("/kubepods/podu1/b"), "cgroup.procs"), "30\n7\n")
	writeFile(t, filepath.Join(tr.hierarchies[0].at("/kubepods/podu1"), "cgroup.procs"), "7\n")
	err := tr.tryRemove("/kubepods/podu1")
	busy := (*BusyError)(nil)
	if !errors.As(err, &busy) {
		t.Fatalf("error %v, want a BusyError", err)
	}
	if diff := cmp.Diff([]int{7, 30}, busy.PIDs); diff != "" {
		t.Errorf("processes differ (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(tr.hierarchies[0].at("/kubepods/podu1/a")); err != nil {
		t.Errorf("a part was removed: %v", err)
	}
}

func TestBusyErrorNamesAFewProcesses(t *testing.T) {
	few := &BusyError{Path: "/kubepods/podu1", PIDs: []int{7, 30}}
	if text := few.Error(); !strings.Contains(text, "/kubepods/podu1 cannot be removed: processes run in it: ") {
		t.Errorf("error is %q", text)
	}
	many := &BusyError{PIDs: make([]int, 25)}
	if text := many.Error(); !strings.Contains(text, "pid 0 and 15 more; end them") {
		t.Errorf("error is %q", text)
	}
}

func TestSettingErrors(t *testing.T) {
	tests := map[string]struct {
		err         error
		unavailable bool
		text        string
	}{
		"read-only":          {&fs.PathError{Op: "open", Path: "x", Err: unix.EROFS}, true, "cgroup /p cannot be created"},
		"not root":           {&fs.PathError{Op: "open", Path: "x", Err: unix.EACCES}, true, "cannot be created"},
		"no such controller": {&fs.PathError{Op: "open", Path: "cpu.weight", Err: unix.ENOENT}, true, "cannot be created"},
		"memory in use":      {&fs.PathError{Op: "write", Path: "x", Err: unix.EBUSY}, false, "more memory is in use than the new limit"},
		"a senseless value":  {&fs.PathError{Op: "write", Path: "x", Err: unix.EINVAL}, false, "setting the limits of cgroup /p"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := settingError("/p", test.err)
			unavailable := (*UnavailableError)(nil)
			if errors.As(err, &unavailable) != test.unavailable || !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want one with %q and unavailable: %v", err, test.text, test.unavailable)
			}
		})
	}
}

// TestCgroupsWithoutPermission runs as a user without permission.
func TestCgroupsWithoutPermission(t *testing.T) {
	var err error
	asOrdinaryUser(t, func() {
		err = (Machine{}).Ensure("/podctl-test-nobody/kubepods/podu1", Resources{CPUShares: new(uint64(2))})
	})
	unavailable := (*UnavailableError)(nil)
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "cannot be created") {
		t.Errorf("error %v, want an UnavailableError", err)
	}
	if (Machine{}).Exists("/podctl-test-nobody") {
		t.Error("it was created anyway")
	}
}

// asOrdinaryUser calls do without root's access to files.
func asOrdinaryUser(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(65534); err != nil {
		t.Fatal(err)
	}
	do()
	if _, err := unix.SetfsuidRetUid(0); err != nil {
		t.Fatal(err)
	}
}
