//go:build e2e

package e2e

import (
	"context"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// purged uses everything that podctl creates on a machine: rules, chains, interfaces, mounts, claims, cgroups and logs.
const purged = serviced + `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hunter2-and-more}
---
apiVersion: v1
kind: Pod
metadata: {name: everything}
spec:
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: memory, emptyDir: {medium: Memory}}
  - {name: login, secret: {secretName: login}}
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [serve, --http, ":8080"]
    ports: [{containerPort: 8080, hostPort: 38080}]
    resources: {requests: {cpu: 10m}}
    volumeMounts: [{name: data, mountPath: /data}, {name: memory, mountPath: /memory}, {name: login, mountPath: /login}]
`

// TestPurge: node down --purge restores the state of the machine before node up. It refuses to run while an agent runs.
func TestPurge(t *testing.T) {
	removeGuards(t)
	before := machineState(t, "")
	m := newMachine(t)
	path := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(path, []byte(purged), 0o600); err != nil {
		t.Fatal(err)
	}
	m.must(t, "apply", "--wait", path)
	if during := machineState(t, m.cgroupRoot()); len(difference(before, during)) < 10 {
		t.Fatalf("podctl changed only %v", difference(before, during))
	}
	agent := m.command(t.Context(), "agent")
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return m.run(t, "agent", "status").code == 0 })
	if r := m.run(t, "node", "down", "--purge"); r.code != 1 || !strings.Contains(r.stderr, "an agent is running for") {
		t.Errorf("while an agent runs: %+v", r)
	}
	if err := agent.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait()
	r := m.must(t, "node", "down", "--purge")
	if !strings.Contains(r.stdout, "everything that podctl created is removed") || strings.Contains(r.stderr, "stays") {
		t.Errorf("%+v", r)
	}
	for _, line := range difference(before, machineState(t, m.cgroupRoot())) {
		t.Errorf("before and after differ: %s", line)
	}
	if _, err := os.Stat(m.state); !os.IsNotExist(err) {
		t.Errorf("the state directory is there: %v", err)
	}
	m.must(t, "node", "down", "--purge")
}

// removeGuards removes the guards that previous tests have left. podctl removes them itself when no port is open any
// more.
func removeGuards(t *testing.T) {
	t.Helper()
	tables, err := exec.CommandContext(t.Context(), "nft", "list", "tables").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(tables)) {
		if name := strings.Fields(line); len(name) == 3 && strings.HasPrefix(name[2], "podctl-") &&
			strings.HasSuffix(name[2], "-guard") {
			if out, err := exec.CommandContext(t.Context(), "nft", "delete", "table", name[1], name[2]).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
}

// difference returns the lines that only one of two states has.
func difference(a, b map[string]bool) []string {
	var lines []string
	for line := range a {
		if !b[line] {
			lines = append(lines, "- "+line)
		}
	}
	for line := range b {
		if !a[line] {
			lines = append(lines, "+ "+line)
		}
	}
	slices.Sort(lines)
	return lines
}

// machineState returns the state that podctl and its plugins change on a machine, one line for each item. If cgroupRoot
// is not empty, only cgroups below it are included, because other tests have their own.
func machineState(t *testing.T, cgroupRoot string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		localnet, _ := os.ReadFile(filepath.Join("/proc/sys/net/ipv4/conf", i.Name, "route_localnet"))
		all["interface "+i.Name+" route_localnet "+strings.TrimSpace(string(localnet))] = true
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		all["mount "+strings.Fields(line)[4]] = true
	}
	maps.Copy(all, kernelRules(t))
	maps.Copy(all, podctlFiles(t, cgroupRoot))
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		// A compiler that builds a test in the meantime also names containerd in its arguments.
		text, err := os.ReadFile(path)
		program, _, _ := strings.Cut(string(text), "\x00")
		if name := filepath.Base(program); err == nil && (name == "containerd" || strings.HasPrefix(name, "containerd-shim")) {
			all["process "+strings.ReplaceAll(string(text), "\x00", " ")] = true
		}
	}
	return all
}

// kernelRules returns the rules and chains of netfilter. The tables of iptables are only included with their contents,
// because its programs create and keep the tables.
func kernelRules(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, "nft", "--stateless", "list", "ruleset").Output()
	if err != nil {
		t.Fatal(err)
	}
	builtin := regexp.MustCompile(`^(table ip6? (nat|filter|mangle|raw) \{|` +
		`chain (PREROUTING|INPUT|OUTPUT|POSTROUTING|FORWARD) \{|type .* hook .*|\}|)$`)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !builtin.MatchString(line) {
			all["rule "+line] = true
		}
	}
	return all
}

// podctlFiles returns the files and cgroups that podctl, containerd or CNI plugins may have created.
func podctlFiles(t *testing.T, cgroupRoot string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	names := regexp.MustCompile(`/cni|/netns|/containerd|/podctl|/var/log/(pods|containers)`)
	for _, root := range []string{"/var/lib", "/var/log", "/run", "/etc"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && names.MatchString(path) {
				all["file "+path] = true
			}
			return nil // It was removed meanwhile.
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if cgroupRoot == "" {
		return all
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/*" + cgroupRoot)
	more, moreErr := filepath.Glob("/sys/fs/cgroup/*/*" + cgroupRoot)
	if err != nil || moreErr != nil {
		t.Fatal(err, moreErr)
	}
	for _, group := range append(groups, more...) {
		all["cgroup "+group] = true
	}
	return all
}
