//go:build e2e

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/cgroups/systemd"
)

// realTree returns the machine's tree, and a root in it for this test only. These tests need root and writable cgroups
// of version 1. With version 2 they check its files.
func realTree(t *testing.T) (*tree, string) {
	t.Helper()
	tr, err := findTree()
	if err != nil {
		t.Fatal(err)
	}
	root := fmt.Sprintf("/podctl-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		if err := (Machine{}).Remove(context.Background(), root); err != nil {
			t.Error(err)
		}
		for _, h := range tr.hierarchies {
			if _, err := os.Stat(h.at(root)); err == nil {
				t.Errorf("%s is left", h.at(root))
			}
		}
	})
	return tr, root
}

// setting is a file of a cgroup with its names in both versions.
type setting struct{ controller, v1, v2 string }

var (
	cpuWeight   = setting{"cpu", "cpu.shares", "cpu.weight"}
	cpuQuota    = setting{"cpu", "cpu.cfs_quota_us", "cpu.max"}
	memoryLimit = setting{"memory", "memory.limit_in_bytes", "memory.max"}
	taskLimit   = setting{"pids", "pids.max", "pids.max"}
)

func (s setting) of(t *testing.T, tr *tree, name string) string {
	t.Helper()
	h, ok := tr.find(s.controller)
	if !ok {
		t.Fatalf("the machine has no controller %s", s.controller)
	}
	file := s.v1
	if tr.unified {
		file = s.v2
	}
	text, err := os.ReadFile(filepath.Join(h.at(name), file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// limits are those of a cgroup; -1 means none.
type limits struct {
	shares        uint64
	quota, memory int64
}

// noMemoryLimit is the kernel's value for no limit in version 1.
const noMemoryLimit = "9223372036854771712"

func (l limits) want(t *testing.T, tr *tree, name string) {
	t.Helper()
	want := map[setting]string{cpuWeight: fmt.Sprint(l.shares), cpuQuota: fmt.Sprint(l.quota), memoryLimit: fmt.Sprint(l.memory)}
	if l.memory < 0 {
		want[memoryLimit] = noMemoryLimit
	}
	if tr.unified {
		want[cpuWeight], want[cpuQuota] = fmt.Sprint(weight(l.shares)), fmt.Sprintf("%d 100000", l.quota)
		if l.quota < 0 {
			want[cpuQuota] = "max 100000"
		}
		if l.memory < 0 {
			want[memoryLimit] = "max"
		}
	}
	for s, text := range want {
		if got := s.of(t, tr, name); got != text {
			t.Errorf("%s of %s is %s, want %s", s.v1, name, got, text)
		}
	}
}

func TestPodCgroupIsMadeWithItsLimitsAndRemoved(t *testing.T) {
	tr, root := realTree(t)
	name := root + "/kubepods/burstable/podu1"
	if (Machine{}).Exists(name) {
		t.Fatal("it exists already")
	}
	r := Resources{
		CPUShares: new(uint64(512)), CPUQuota: new(int64(50000)), CPUPeriod: new(uint64(100000)), Memory: new(int64(64 << 20)),
		Pids: new(int64(321)), HugePages: map[string]uint64{"2MB": 0},
	}
	for range 2 {
		if err := (Machine{}).Ensure(name, r); err != nil {
			t.Fatal(err)
		}
		limits{512, 50000, 64 << 20}.want(t, tr, name)
		if got := taskLimit.of(t, tr, name); got != "321" {
			t.Errorf("pids.max is %s", got)
		}
	}
	if !(Machine{}).Exists(name) {
		t.Error("it does not exist")
	}
	if err := (Machine{}).Ensure(name, Resources{CPUShares: new(uint64(100))}); err != nil {
		t.Fatal(err)
	}
	limits{100, -1, -1}.want(t, tr, name)
	for range 2 {
		if err := (Machine{}).Remove(context.Background(), name); err != nil {
			t.Fatal(err)
		}
	}
	if (Machine{}).Exists(name) {
		t.Error("it still exists")
	}
}

func TestBurstableTierWeight(t *testing.T) {
	tr, root := realTree(t)
	tierName := root + "/kubepods/burstable"
	for i, want := range []uint64{300, 600, 900} {
		if err := (Machine{}).Ensure(fmt.Sprintf("%s/podu%d", tierName, i), Resources{CPUShares: new(uint64(300))}); err != nil {
			t.Fatal(err)
		}
		wantWeight(t, tr, tierName, want)
	}
	if err := (Machine{}).Remove(context.Background(), tierName+"/podu1"); err != nil {
		t.Fatal(err)
	}
	wantWeight(t, tr, tierName, 600)
	if err := (Machine{}).Ensure(root+"/kubepods/besteffort/podu4", Resources{CPUShares: new(uint64(2))}); err != nil {
		t.Fatal(err)
	}
	wantWeight(t, tr, root+"/kubepods/besteffort", 2)
}

func wantWeight(t *testing.T, tr *tree, name string, cpuShares uint64) {
	t.Helper()
	got, err := strconv.ParseUint(cpuWeight.of(t, tr, name), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if tr.unified {
		got = shares(got)
	}
	if got+60 < cpuShares || got > cpuShares+60 || (!tr.unified && got != cpuShares) { // Weights are rounded.
		t.Errorf("%s has %d shares, want %d", name, got, cpuShares)
	}
}

func TestTierThatIsThereIsNotChanged(t *testing.T) {
	tr, root := realTree(t)
	if err := (Machine{}).Ensure(root+"/kubepods/podu1", Resources{CPUShares: new(uint64(300))}); err != nil {
		t.Fatal(err)
	}
	if err := tr.set(root+"/kubepods", tr.translate(Resources{CPUShares: new(uint64(5000))})); err != nil {
		t.Fatal(err)
	}
	if err := (Machine{}).Ensure(root+"/kubepods/podu2", Resources{CPUShares: new(uint64(300))}); err != nil {
		t.Fatal(err)
	}
	wantWeight(t, tr, root+"/kubepods", 5000)
}

// occupy adds a process to a container's cgroup below a pod's, like a runtime. The process is a child of the test.
func occupy(t *testing.T, tr *tree, name string) *exec.Cmd {
	t.Helper()
	if err := (Machine{}).Ensure(name, Resources{CPUShares: new(uint64(300))}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, h := range tr.hierarchies {
		dir := h.at(name + "/container")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if len(h.controllers) > 0 && h.controllers[0] == "cpuset" && !tr.unified {
			continue // cpuset must be initialized before a process can join.
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cmd
}

// isBusy reports whether an error names a process that runs in a cgroup.
func isBusy(err error, cmd *exec.Cmd) bool {
	busy := (*BusyError)(nil)
	return errors.As(err, &busy) && slices.Equal(busy.PIDs, []int{cmd.Process.Pid})
}

// TestCgroupWithAProcessStays checks that Remove waits for the end of a process.
func TestCgroupWithAProcessStays(t *testing.T) {
	tr, root := realTree(t)
	name := root + "/kubepods/podu1"
	cmd := occupy(t, tr, name)
	began := time.Now()
	if err := (Machine{}).Remove(context.Background(), name); !isBusy(err, cmd) || time.Since(began) < removeTimeout {
		t.Errorf("error %v after %s, want a BusyError with process %d", err, time.Since(began), cmd.Process.Pid)
	}
	if !(Machine{}).Exists(name) {
		t.Error("it was removed although it is in use")
	}
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	err := (Machine{}).Remove(context.Background(), name)
	// On a busy machine, the process may still run after the 500 ms for which Remove waits.
	for end := time.Now().Add(time.Minute); isBusy(err, cmd) && time.Now().Before(end); {
		err = (Machine{}).Remove(context.Background(), name)
	}
	if err != nil {
		t.Errorf("while the process ends: %v", err)
	}
}

// TestDestroyKillsProcesses checks that a cgroup goes with its processes, unless they are used or another runtime has
// started them.
func TestDestroyKillsProcesses(t *testing.T) {
	tr, root := realTree(t)
	name := root + "/kubepods/podu1"
	cmd := occupy(t, tr, name)
	used := errors.New("used")
	// The parent of the process is this test, which stands for the runtime.
	for socket, unused := range map[string]error{os.Args[0]: used, "/run/another.sock": nil, "": nil} {
		err := (Machine{}).Destroy(t.Context(), name, socket, func() error { return unused })
		if !isBusy(err, cmd) || unused != nil && !errors.Is(err, used) {
			t.Errorf("runtime %q, use %v: error %v, want a BusyError with process %d", socket, unused, err, cmd.Process.Pid)
		}
		if isExiting(cmd.Process.Pid) {
			t.Fatalf("runtime %q, use %v: the process was killed", socket, unused)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := (Machine{}).Destroy(t.Context(), name, os.Args[0], func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended with %v", err)
	}
	if (Machine{}).Remains(name) {
		t.Error("the cgroup is left")
	}
}

// TestKillSparesProcessesOfANewCgroup checks that a cgroup that was opened before it was removed and created again has
// no processes, and that the first process of a list that ended meanwhile, whose id another process has, is not killed.
func TestKillSparesProcessesOfANewCgroup(t *testing.T) {
	tr, root := realTree(t)
	name := root + "/kubepods/podu1"
	if err := (Machine{}).Ensure(name, Resources{CPUShares: new(uint64(300))}); err != nil {
		t.Fatal(err)
	}
	before := open(tr, name)
	defer before.close()
	if err := (Machine{}).Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	cmd := occupy(t, tr, name)
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if pids, err := before.processes(); err != nil || len(pids) > 0 {
		t.Errorf("processes %v %v", pids, err)
	}
	if err := before.killEach([]int{cmd.Process.Pid}); err != nil {
		t.Error(err)
	}
	if isExiting(cmd.Process.Pid) {
		t.Error("a process that is not in the cgroup was killed")
	}
}

// TestCgroupThatCannotGetItsLimitsIsNotLeft requests a quota that the kernel refuses.
func TestCgroupThatCannotGetItsLimitsIsNotLeft(t *testing.T) {
	_, root := realTree(t)
	name := root + "/kubepods/podu1"
	err := (Machine{}).Ensure(name, Resources{CPUQuota: new(int64(1)), CPUPeriod: new(uint64(100000))})
	unavailable := (*UnavailableError)(nil)
	if err == nil || errors.As(err, &unavailable) {
		t.Errorf("error %v, want one about the limit", err)
	}
	if (Machine{}).Exists(name) {
		t.Error("a cgroup without limits is left, and would be taken to have them")
	}
	if err := (Machine{}).Ensure(name, Resources{CPUShares: new(uint64(300))}); err != nil {
		t.Fatal(err)
	}
	if err := (Machine{}).Ensure(name, Resources{CPUQuota: new(int64(1)), CPUPeriod: new(uint64(100000))}); err == nil {
		t.Error("no error")
	}
	if !(Machine{}).Exists(name) {
		t.Error("a cgroup that was there before is gone")
	}
}

// TestPodCgroupsAreCreatedInParallel creates and removes many pods' cgroups in parallel, starting without their
// parents.
func TestPodCgroupsAreCreatedInParallel(t *testing.T) {
	tr, root := realTree(t)
	tiers := []string{"", "/burstable", "/besteffort"}
	name := func(i int) string { return fmt.Sprintf("%s/kubepods%s/podu%d", root, tiers[i%3], i) }
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			if err := (Machine{}).Ensure(name(i), Resources{CPUShares: new(uint64(100)), Memory: new(int64(32 << 20))}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range 12 {
		limits{100, -1, 32 << 20}.want(t, tr, name(i))
	}
	for i := range 12 {
		all.Go(func() {
			if err := (Machine{}).Remove(context.Background(), name(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range 12 {
		if (Machine{}).Exists(name(i)) {
			t.Errorf("%s still exists", name(i))
		}
	}
}

// TestCgroupsBelowThePodsGoWithIt leaves cgroups of a runtime's containers, also in hierarchies that podctl does not
// use.
func TestCgroupsBelowThePodsGoWithIt(t *testing.T) {
	tr, root := realTree(t)
	name := root + "/kubepods/besteffort/podu1"
	if err := (Machine{}).Ensure(name, Resources{CPUShares: new(uint64(2))}); err != nil {
		t.Fatal(err)
	}
	for _, h := range tr.hierarchies {
		if err := os.MkdirAll(h.at(name+"/sandbox/nested"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := (Machine{}).Remove(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	for _, h := range tr.hierarchies {
		if _, err := os.Stat(h.at(name)); err == nil {
			t.Errorf("%s is left", h.at(name))
		}
	}
	if !(Machine{}).Exists(root + "/kubepods/besteffort") {
		t.Error("the tier is gone with its last pod")
	}
}

// TestSliceIsMadeWithItsLimitsAndRemoved checks that systemd creates the slices of a pod where podctl expects them,
// also below a root, and does not recreate them.
func TestSliceIsMadeWithItsLimitsAndRemoved(t *testing.T) {
	tr, err := findTree()
	if err != nil {
		t.Fatal(err)
	}
	if !tr.unified || !systemd.IsRunningSystemd() {
		t.Skip("this machine has no systemd with cgroup v2")
	}
	root := fmt.Sprintf("/podctl_test_%d.slice", os.Getpid())
	prefix := strings.TrimSuffix(root, ".slice") + "-kubepods"
	tierName := root + prefix + ".slice" + prefix + "-burstable.slice"
	name := tierName + prefix + "-burstable-podu_1.slice"
	t.Cleanup(func() {
		if err := (Machine{}).Remove(context.Background(), root); err != nil || tr.remains(root) {
			t.Errorf("%s is left: %v", root, err)
		}
	})
	r := Resources{
		CPUShares: new(uint64(512)), CPUQuota: new(int64(50000)), CPUPeriod: new(uint64(100000)), Memory: new(int64(64 << 20)),
		HugePages: map[string]uint64{"2MB": 0},
	}
	for range 2 {
		if err := (Machine{}).Ensure(name, r); err != nil {
			t.Fatal(err)
		}
		limits{512, 50000, 64 << 20}.want(t, tr, name)
	}
	controllers := func(of string) []string { return readWords(tr.hierarchies[0].at(of + "/cgroup.controllers")) }
	if !(Machine{}).Exists(name) {
		t.Errorf("it does not exist: of the controllers %v it has %v, and its tier %v",
			tr.hierarchies[0].controllers, controllers(name), controllers(tierName))
	}
	wantWeight(t, tr, tierName, 512)
	if err := (Machine{}).Ensure(name, Resources{CPUShares: new(uint64(100))}); err != nil {
		t.Fatal(err)
	}
	limits{100, -1, -1}.want(t, tr, name)
	for range 2 {
		if err := (Machine{}).Remove(context.Background(), name); err != nil {
			t.Fatal(err)
		}
	}
	if (Machine{}).Exists(name) || !(Machine{}).Exists(tierName) {
		t.Error("it still exists, or its tier went with it")
	}
}

// holdMemory starts a process in a cgroup that holds 32 MiB. release ends it.
func holdMemory(t *testing.T, tr *tree, name string) (release func()) {
	t.Helper()
	h, _ := tr.find("memory")
	script := "echo $$ >" + filepath.Join(h.at(name), "cgroup.procs") +
		`; x=$(head -c 33554432 /dev/zero | tr '\0' x); echo held; read _`
	holder := exec.CommandContext(t.Context(), "sh", "-c", script)
	in, err := holder.StdinPipe()
	out, errOut := holder.StdoutPipe()
	if err = errors.Join(err, errOut, holder.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err = out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(in.Close(), holder.Wait()); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Error(err)
		}
	}
}

// TestWorkingSetOfGroup checks that the memory of a process in a cgroup is its working set.
func TestWorkingSetOfGroup(t *testing.T) {
	tr, root := realTree(t)
	if tr.unified {
		t.Skip("the cgroups of version 2 belong to systemd")
	}
	limit := int64(128 << 20)
	if err := (Machine{}).Ensure(root, Resources{Memory: &limit}); err != nil {
		t.Fatal(err)
	}
	release := holdMemory(t, tr, root)
	usage, err := Machine{}.Usage(root)
	if err != nil || usage.WorkingSet == nil || usage.Limit == nil || *usage.Limit != uint64(limit) {
		t.Fatalf("%+v %v", usage, err)
	}
	used := int64(*usage.WorkingSet)
	if used < 32<<20 || used > limit {
		t.Errorf("working set %d, with 32 MiB held of %d", used, limit)
	}
	if all, err := WorkingSet(); err != nil || all < used {
		t.Errorf("working set of the machine %d %v, less than %d", all, err, used)
	}
	release()
}
