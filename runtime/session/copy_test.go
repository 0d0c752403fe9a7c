package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/filecopy"
)

// proc returns a directory that looks like that of a process.
func proc(t *testing.T, cgroup, status string) *os.File {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cgroup": cgroup, "status": status} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() }) //nolint:errcheck // a directory
	return f
}

// TestOwnerOfAnotherProcessIsRefused checks that the ID must be part of the cgroup's path, and that the status must
// contain the user.
func TestOwnerOfAnotherProcessIsRefused(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	const status = "Name:\tapp\nUid:\t1\t5\t1\t1\nGid:\t2\t6\t2\t2\n"
	for _, cgroup := range []string{
		"0::/kubepods/pod1/" + id + "\n", "12:pids:/x\n1:name=systemd:/kubepods/besteffort/pod1/" + id + "\n",
		"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope\n", "0::/kubepods.slice/crio-" + id + ".scope/init.scope\n",
		"1:pids:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + id + "\n",
	} {
		if owner, err := ownerOf(proc(t, cgroup, status), id); err != nil || owner != (filecopy.Owner{UID: 5, GID: 6}) {
			t.Errorf("%q: %v %v", cgroup, owner, err)
		}
	}
	for _, cgroup := range []string{
		"0::/kubepods/pod1/" + id[1:] + "\n",
		"0::/kubepods/pod1/x" + id + "\n",
		"0::/kubepods/" + id + "x/y\n",
		"0::/\n",
		"",
	} {
		if owner, err := ownerOf(proc(t, cgroup, status), id); err == nil ||
			!strings.Contains(err.Error(), "does not belong to the container") {
			t.Errorf("%q: %v %v", cgroup, owner, err)
		}
	}
	if owner, err := ownerOf(proc(t, "0::/\n", status), ""); err == nil {
		t.Errorf("a container without an id: %v", owner)
	}
	for _, status := range []string{"", "Uid:\t0\t0\t0\t0\n", "Gid:\t0\t0\t0\t0\n", "Uid:\t0\tx\nGid:\t0\t0\t0\t0\n"} {
		if owner, err := ownerOf(proc(t, "0::/"+id+"\n", status), id); err == nil {
			t.Errorf("a process without a reported user, %q: %v", status, owner)
		}
	}
}

// TestDescriptorsOfEndedProcesses checks that an open descriptor belongs to one process, also after the process has
// ended.
func TestDescriptorsOfEndedProcesses(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid)))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	if _, err = readProc(dir, "status"); err != nil {
		t.Fatal(err)
	}
	if err = cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if _, err = readProc(dir, "status"); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("the status of a process that has ended was read")
	}
	if files, err := filesOf(dir, "app", "x"); err == nil {
		t.Errorf("the files of a process that has ended were opened: %v", files)
	}
}
