//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testLeftProcesses puts processes into the cgroup of a pod, like a runtime that forgets a container. Its deletion kills
// them, but not while another program may need one of them.
func testLeftProcesses(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", edited(t, hello, "name: hello\n  labels:", "name: left\n  labels:"))
	group := m.groupOf(t, "left")
	left := occupy(t, m.cgroupRoot(), group, m.socket())
	foreign := occupy(t, m.cgroupRoot(), group, "/run/another.sock")
	r := m.run(t, "delete", "left")
	if r.code != 1 || !strings.Contains(r.stderr, "processes run in it: sleep (pid ") {
		t.Errorf("a process of another program: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if err := foreign.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = foreign.Wait() // init has its child now.
	m.must(t, "delete", "left")
	if err := left.Wait(); left.ProcessState.ExitCode() != 137 {
		t.Errorf("the process ended with %v, want SIGKILL", err)
	}
	if dirs, err := cgroupsBelow(m.cgroupRoot()); err != nil || strings.Contains(strings.Join(dirs, "\n"), group) {
		t.Errorf("cgroups are left: %v %v", dirs, err)
	}
}

// groupOf returns the last part of the cgroup of a pod.
func (m *machine) groupOf(t *testing.T, pod string) string {
	t.Helper()
	uid := string(m.pod(t, pod).UID)
	dirs, err := cgroupsBelow(m.cgroupRoot())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		base := filepath.Base(dir)
		if name := strings.ReplaceAll(base, "_", "-"); strings.HasSuffix(strings.TrimSuffix(name, ".slice"), "pod"+uid) {
			return base
		}
	}
	t.Fatalf("no cgroup of pod %s: %v", pod, dirs)
	return ""
}

// occupy starts a process in a new cgroup below that of a pod, in each hierarchy that allows it. The process is a child
// of a shell with an argument, which ends with the exit code of the process.
func occupy(t *testing.T, root, group, argument string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 >/dev/null & echo $!; wait $!", "sh", argument)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	var pid int
	if err == nil {
		_, err = fmt.Fscan(out, &pid)
	}
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := cgroupsBelow(root)
	if err != nil {
		t.Fatal(err)
	}
	joined := 0
	for _, dir := range dirs {
		if filepath.Base(dir) != group {
			continue
		}
		dir = filepath.Join(dir, fmt.Sprint("left-", pid))
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(fmt.Sprint(pid)), 0o600)
		}
		if err == nil { // cpuset of version 1 must be initialized first.
			joined++
		}
	}
	if joined == 0 {
		t.Fatalf("process %d could join no cgroup of %v", pid, dirs)
	}
	return cmd
}
