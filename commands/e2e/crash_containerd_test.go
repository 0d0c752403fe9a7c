//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// The number of points per command on a real runtime, where each point takes seconds: with all shapes, and in a normal
// run of the tests.
const (
	crashesTried      = 12
	crashesTriedShort = 5
)

// testKilled runs the crash matrix on a real runtime. Unlike the one in memory, a real runtime can also leak processes,
// addresses and network namespaces.
func testKilled(t *testing.T, m *machine) {
	all, tried := crashes(), crashesTried
	delete(all, "a pull") // There is no registry: it is "two containers" here.
	if os.Getenv(crashVar) == "" {
		all = map[string]crash{
			"mounted volumes": all["mounted volumes"], "replace with a hook": all["replace with a hook"],
			"delete after sidecar": all["delete after sidecar"],
		}
		tried = crashesTriedShort
	}
	before := orphanedNetworks(t)
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			u := newLab(m.crashLab).measure(t, demonstrated(c))
			if os.Getenv(crashVar) != "all" {
				u.points = spread(u.points, tried)
			}
			for i, p := range u.points {
				u.survives(t, demonstrated(c), p, i)
			}
		})
	}
	m.must(t, "delete", "beside")
	waitFor(t, func() bool { return len(subtract(orphanedNetworks(t), before)) == 0 })
}

// crashLab returns a lab with the runtime of the machine. All labs share the pod beside.
func (m *machine) crashLab(t *testing.T, c crash) *crashLab {
	t.Helper()
	dir, err := os.MkdirTemp("", "podctl-kill-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	l := &crashLab{
		t:        t,
		dir:      dir,
		crash:    c,
		podctl:   m.bin,
		env:      "NO_COLOR=1",
		patience: 100 * time.Millisecond,
		beside:   demonstrate(beside, nil),
		socket:   m.socket(), stateDir: m.state, logRoot: m.logs, cgroupRoot: m.cgroupRoot(),
	}
	l.more = func() []string { return m.machinery(t) }
	l.repair = func(printed string) bool {
		// containerd 1.6 may lose the resources of a record if the connection that requested its removal is cut. It
		// repairs that at its next start (docs/limits.md).
		lost := strings.Contains(printed, "restart the runtime: ")
		if lost {
			restartContainerd(t, m)
		}
		return lost
	}
	l.end = func() error {
		for _, pod := range []string{"web", "second"} {
			m.run(t, "delete", "--force", pod)
		}
		return errors.Join(os.RemoveAll(l.dir), os.RemoveAll(filepath.Join(m.logs, ".deleted")))
	}
	// Other tests also delete pods.
	if err := os.RemoveAll(filepath.Join(m.logs, ".deleted")); err != nil {
		t.Fatal(err)
	}
	l.prepare()
	return l
}

// demonstrated returns a crash whose containers run the demo program.
func demonstrated(c crash) crash {
	c.Before, c.After = demonstrate(c.Before, c.Behave), demonstrate(c.After, c.Behave)
	return c
}

var shapeContainer = regexp.MustCompile(`(name: (\w+)(,|\n) *)image: '\w+:(\d)'`)

// demonstrate replaces the images of a manifest by the demo program. A different image becomes a different argument.
func demonstrate(manifest string, behave map[string][]runtimetest.Behaviour) string {
	return shapeContainer.ReplaceAllStringFunc(manifest, func(text string) string {
		part := shapeContainer.FindStringSubmatch(text)
		args := "[sleep, --drain, " + part[4] + "ms]"
		if len(behave[part[2]]) > 0 {
			args = "[exit, --after, 50ms, '0']"
		}
		separator := ", "
		if part[3] == "\n" {
			separator = strings.TrimPrefix(part[1], "name: "+part[2])
		}
		return part[1] + "image: registry.local/podctl/demo:1" + separator + "args: " + args
	})
}

// machinery returns the resources that a runtime has for pods besides their records: shims and addresses.
func (m *machine) machinery(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, path := range glob(t, "/proc/[0-9]*/cmdline") {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "containerd-shim") &&
			strings.Contains(string(text), m.state+"/") {
			lines = append(lines, "shim")
		}
	}
	leases := glob(t, filepath.Join(m.state, "node", "cni", "ipam", "*", "[0-9]*.[0-9]*"))
	return append(lines, slices.Repeat([]string{"address"}, len(leases))...)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// orphanedNetworks returns the named network namespaces without processes.
func orphanedNetworks(t *testing.T) []string {
	t.Helper()
	used := map[string]bool{}
	for _, path := range glob(t, "/proc/[0-9]*/ns/net") {
		if target, err := os.Readlink(path); err == nil {
			used[target] = true
		}
	}
	var names []string
	for _, path := range glob(t, "/run/netns/cni-*") {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err == nil && !used[fmt.Sprintf("net:[%d]", stat.Ino)] {
			names = append(names, path)
		}
	}
	return names
}

// restartContainerd kills the node's containerd and starts it again.
func restartContainerd(t *testing.T, m *machine) {
	t.Helper()
	killContainerd(t, m)
	m.must(t, "node", "up", "--containerd", need(t, "PODCTL_CONTAINERD"))
}

// testRuntimeRestartAtCalls: containerd is killed after it has executed a call, and restarted. podctl then completes
// its task or reports why it cannot, and the same command reaches the same state as without the restart.
func testRuntimeRestartAtCalls(t *testing.T, m *machine) {
	sidecar := crashes()["sidecar"]
	for _, one := range []struct {
		crash   crash
		methods []string
	}{
		{sidecar, []string{"RunPodSandbox", "CreateContainer", "StartContainer"}},
		{crashes()["delete after sidecar"], []string{"StopContainer", "RemovePodSandbox"}},
	} {
		c := demonstrated(one.crash)
		u := newLab(m.crashLab).measure(t, c)
		for _, method := range one.methods {
			u.survives(t, c, point{
				"the restart of containerd after " + method,
				func(l *crashLab) bool { return l.restartAtCall(m, method) },
			}, 0)
		}
	}
	m.must(t, "delete", "beside")
}

// restartAtCall runs the command while containerd is restarted. An error must be a clear message about the pod.
func (l *crashLab) restartAtCall(m *machine, method string) bool {
	l.t.Helper()
	restarted := false
	l.proxy.Disturb(runtimetest.Disturbance{Method: method, KillAfter: func() {
		restarted = true
		restartContainerd(l.t, m)
	}})
	cmd := exec.CommandContext(l.t.Context(), m.bin, l.args(l.crash.args)...)
	r := m.runWith(l.t, cmd)
	l.proxy.Calm()
	l.t.Logf("%s: exit code %d\n%s%s", method, r.code, r.stdout, r.stderr)
	if strings.Contains(r.stderr, "rpc error") || (r.code != 0 && !strings.Contains(r.stderr, "default/web")) {
		l.t.Errorf("%s: exit code %d\n%s", method, r.code, r.stderr)
	}
	return restarted
}
