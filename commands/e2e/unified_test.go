//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// needsUnified skips a test that needs cgroup v2.
func needsUnified(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		t.Skip("this machine has no cgroup v2:", err)
	}
}

// cgroupOf returns the cgroup directory below the test's root whose name contains a word.
func (m *machine) cgroupOf(t *testing.T, word string) string {
	t.Helper()
	dirs, err := cgroupsBelow(m.cgroupRoot())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(dirs, func(dir string) bool { return strings.Contains(filepath.Base(dir), word) })
	if i < 0 {
		t.Fatalf("there is no cgroup of %s in %v", word, dirs)
	}
	return dirs[i]
}

// wantFiles compares the files of a cgroup. Alternative values are separated by |. A file may be missing if the kernel
// lacks the controller.
func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	for file, values := range want {
		text, err := os.ReadFile(filepath.Join(dir, file))
		got := strings.TrimSpace(string(text))
		if err != nil {
			got = "none"
		}
		if !slices.Contains(strings.Split(values, "|"), got) {
			t.Errorf("%s of %s is %s, want %s", file, dir, got, values)
		}
	}
}

const limited = `apiVersion: v1
kind: Pod
metadata: {name: limited}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [log, --forever]
    resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 500m, memory: 64Mi}}
  - name: side
    image: registry.local/podctl/demo:1
    args: [sleep]
    resources: {requests: {cpu: 50m, memory: 16Mi}, limits: {cpu: 250m, memory: 32Mi}}
`

// testUnifiedLimits checks the names of cgroups, and the values in the kernel for a pod and its containers, before and
// after a change in place. They are those of a kubelet without feature gates: memory.min, memory.high and the pids.max
// of a pod are not set.
func testUnifiedLimits(t *testing.T, m *machine) {
	needsUnified(t)
	path := write(t, limited)
	m.must(t, "apply", "--wait", "--timeout", "60s", path)
	uid, ids := string(m.pod(t, "limited").UID), m.ids(t, "limited")
	name, container := "burstable/pod"+uid, ids["app"]
	if parent := m.cgroupParent(t); strings.HasSuffix(parent, ".slice") {
		prefix := slicePrefix(m.cgroupRoot()) + "-kubepods-burstable"
		name = prefix + ".slice/" + prefix + "-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
		container = "cri-containerd-" + container + ".scope"
	}
	pod, app := m.cgroupOf(t, strings.TrimSuffix(filepath.Base(name), ".slice")), m.cgroupOf(t, ids["app"])
	if !strings.HasSuffix(pod, "/"+name) || app != filepath.Join(pod, container) {
		t.Errorf("the cgroups are %s and %s, want %s and %s in it", pod, app, name, container)
	}
	wantFiles(t, pod, map[string]string{
		"cpu.weight":      "6",
		"cpu.max":         "75000 100000",
		"memory.max":      "100663296",
		"memory.min":      "0",
		"memory.low":      "0",
		"memory.high":     "max",
		"hugetlb.2MB.max": "0|none", "pids.max": "max", "memory.oom.group": "0",
	})
	// runc has converted shares to a weight in two ways. By default, containerd leaves huge pages to the pod's cgroup
	// (disable_hugetlb_controller).
	wantFiles(t, app, map[string]string{
		"cpu.weight":      "4|17",
		"cpu.max":         "50000 100000",
		"memory.max":      "67108864",
		"memory.min":      "0",
		"memory.high":     "max",
		"hugetlb.2MB.max": "0|max|none", "memory.oom.group": "1", "memory.swap.max": "0|none",
	})
	m.must(t, "apply", "--wait", "--timeout", "60s",
		edited(t, path, "limits: {cpu: 500m, memory: 64Mi}", "limits: {cpu: 400m, memory: 80Mi}"))
	if after := m.ids(t, "limited"); !sameMap(ids, after) {
		t.Errorf("before %v, after %v: want limits updated in place", ids, after)
	}
	wantFiles(t, pod, map[string]string{"cpu.max": "65000 100000", "memory.max": "117440512"})
	wantFiles(t, app, map[string]string{"cpu.max": "40000 100000", "memory.max": "83886080", "memory.oom.group": "1"})
	m.must(t, "delete", "limited")
	if dirs, err := cgroupsBelow(m.cgroupRoot()); err != nil || slices.Contains(dirs, pod) {
		t.Errorf("the pod's cgroup is left: %v", err)
	}
}

const hungry = `apiVersion: v1
kind: Pod
metadata: {name: hungry}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: whole
    image: registry.local/podctl/demo:1
    args: [sleep]
    resources: {limits: {memory: 48Mi}}
  - name: alone
    image: registry.local/podctl/demo:1
    args: [read, /dev/zero]
    resources: {limits: {memory: 48Mi}}
`

// testOutOfMemory: the kernel kills a container that uses too much memory, with all its processes (memory.oom.group),
// and the status shows it. The reason comes from the runtime. containerd notices the kill only while the cgroup exists,
// which may already be gone for the first process.
func testOutOfMemory(t *testing.T, m *machine) {
	needsUnified(t)
	m.must(t, "apply", write(t, hungry))
	if r := m.run(t, "exec", "hungry", "-c", "whole", "--", "/demo", "read", "/dev/zero"); r.code == 0 {
		t.Errorf("a container without memory succeeded: %s%s", r.stdout, r.stderr)
	}
	waitFor(t, func() bool { return len(m.ids(t, "hungry")) == 0 })
	pod := m.pod(t, "hungry")
	reported := 0
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != 137 {
			t.Errorf("%s: %+v", s.Name, s.State)
		} else if s.State.Terminated.Reason == "OOMKilled" {
			reported++
		}
	}
	if reported == 0 {
		t.Error("no container is reported as OOMKilled")
	}
	if pod.Status.Phase != v1.PodFailed {
		t.Errorf("phase %s", pod.Status.Phase)
	}
	m.must(t, "delete", "hungry")
}

const confined = `apiVersion: v1
kind: Pod
metadata: {name: confined}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: unsaid, image: "registry.local/podctl/demo:1", args: [sleep]}
  - {name: default, image: "registry.local/podctl/demo:1", args: [sleep], securityContext: {appArmorProfile: {type: RuntimeDefault}}}
  - {name: none, image: "registry.local/podctl/demo:1", args: [sleep], securityContext: {appArmorProfile: {type: Unconfined}}}
  - name: own
    image: registry.local/podctl/demo:1
    args: [sleep]
    securityContext: {appArmorProfile: {type: Localhost, localhostProfile: podctl-e2e}}
`

// testAppArmor: every type of profile is enforced, and a profile that is not loaded holds the pod.
func testAppArmor(t *testing.T, m *machine) {
	if on, err := os.ReadFile("/sys/module/apparmor/parameters/enabled"); err != nil || string(on) != "Y\n" {
		t.Skip("this machine has no AppArmor")
	}
	path := write(t, confined)
	if r := m.run(t, "plan", "--exit-code", path); r.code != 2 ||
		!strings.Contains(r.stdout, `profile "podctl-e2e" is not loaded`) {
		t.Errorf("an unknown profile: exit code %d\n%s", r.code, r.stdout)
	}
	profile := write(t,
		"profile podctl-e2e flags=(attach_disconnected) {\n  file,\n  network,\n  signal,\n  capability,\n}\n")
	load := func(flag string) {
		parser := exec.Command("apparmor_parser", flag, profile) //nolint:noctx // it also runs at the end of the test
		if out, err := parser.CombinedOutput(); err != nil {
			t.Fatalf("apparmor_parser: %v\n%s", err, out)
		}
	}
	load("--add")
	t.Cleanup(func() { load("--remove") })
	m.must(t, "apply", "--wait", "--timeout", "60s", path)
	// Debian has profiles for runc and crun themselves, which allow everything.
	for container, want := range map[string]string{
		"unsaid": "cri-containerd.apparmor.d (enforce)", "default": "cri-containerd.apparmor.d (enforce)",
		"none": "unconfined|runc (unconfined)|crun (unconfined)", "own": "podctl-e2e (enforce)",
	} {
		r := m.must(t, "exec", "confined", "-c", container, "--", "/demo", "read", "/proc/self/attr/current")
		_, got, _ := strings.Cut(strings.TrimSpace(r.stdout), "\n")
		if !slices.Contains(strings.Split(want, "|"), got) {
			t.Errorf("%s runs under %q, want %q", container, got, want)
		}
	}
	m.must(t, "delete", "confined")
}
