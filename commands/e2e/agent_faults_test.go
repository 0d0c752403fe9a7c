//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// faultyAgent is an agent whose calls to the runtime fail at random, including its stream of events and its lists,
// while its files change.
type faultyAgent struct {
	t        *testing.T
	m        *machine
	proxy    *runtimetest.Proxy
	endpoint string
	agent    *agentProcess
	// dead is set when a fault has killed the agent.
	dead *atomic.Bool
	r    *rand.Rand
	// wanted has the containers of each pod with a file.
	wanted map[string][]string
	// others are the directories of pods that other tests left.
	others []string
	// kept has the running containers of each pod that the test has not touched since they were last observed.
	kept map[string]map[string]string
	log  []string
	// came counts the faults that occurred.
	came int
}

const (
	faultyPods = 6
	// faultsAtOnce is the number of faults before the agent must settle.
	faultsAtOnce = 40
	// faultyRest is the time limit for that. It allows for some failing passes and the delays of restarts.
	faultyRest = 3 * time.Minute
)

// steadyPods never change. No fault may affect their containers.
const steadyPods = `apiVersion: v1
kind: Pod
metadata: {name: steady}
spec:
  initContainers: [{name: s, image: 'registry.local/podctl/demo:1', args: [sleep], restartPolicy: Always}]
  containers:
  - name: a
    image: registry.local/podctl/demo:1
    args: [sleep]
    livenessProbe: {periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 6, exec: {command: [/demo, exit, '0']}}
    readinessProbe: {periodSeconds: 1, timeoutSeconds: 1, exec: {command: [/demo, exit, '0']}}
`

// TestAgentFaultsInMemory runs the agent on a runtime in memory.
func TestAgentFaultsInMemory(t *testing.T) { faultyAgents(t, machineInMemory(t), 60) }

// testAgentFaults runs the agent on containerd.
func testAgentFaults(t *testing.T, m *machine) { faultyAgents(t, m, 30) }

// faultyAgents checks that an agent loses, leaks and duplicates nothing, and does not restart a healthy and up-to-date
// container, whatever fails. PODCTL_TRIALS is the number of faults. few is the default.
func faultyAgents(t *testing.T, m *machine, few int) {
	t.Helper()
	socket := filepath.Join(os.TempDir(), filepath.Base(m.state)+".faults")
	proxy, err := runtimetest.StartProxy(t.Context(), socket, m.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close() //nolint:errcheck // the test is over
	count, seed := trials(few)
	f := &faultyAgent{
		t: t, m: m, proxy: proxy, endpoint: "unix://" + socket, r: rand.New(rand.NewPCG(seed, 0)),
		wanted: map[string][]string{},
		kept:   map[string]map[string]string{},
		others: glob(t, filepath.Join(m.state, "pods", "*")),
	}
	dir := filepath.Join(t.TempDir(), "pods")
	if err = os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f.start(dir)
	f.agent.put(t, "steady.yaml", steadyPods)
	f.wanted["steady"] = []string{"s", "a"}
	defer func() {
		if t.Failed() {
			t.Logf("PODCTL_SEED=%d, the last events:\n%s", seed, strings.Join(f.log[max(0, len(f.log)-150):], "\n"))
		}
	}()
	f.settle()
	for f.came < count && !t.Failed() {
		f.round()
	}
	t.Logf("%d faults were injected", f.came)
	f.end()
}

// start starts an agent. A fault may kill it at once.
func (f *faultyAgent) start(dir string) {
	f.t.Helper()
	f.agent = launchAgent(f.t, f.m, dir, "-r", f.endpoint, "--request-timeout", "1s")
	f.dead = &atomic.Bool{}
}

// live starts another agent if a fault has killed the last one.
func (f *faultyAgent) live() {
	f.t.Helper()
	if f.dead.Load() {
		f.note("another agent")
		_ = f.agent.cmd.Wait()
		f.start(f.agent.dir)
	}
}

// dies returns a function that kills the current agent.
func (f *faultyAgent) dies() func() {
	process, dead := f.agent.cmd.Process, f.dead
	return func() {
		_ = process.Kill() // It may be dead already.
		dead.Store(true)
	}
}

func (f *faultyAgent) note(format string, args ...any) {
	f.log = append(f.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// round causes faults for a while, and then checks that the agent settles.
func (f *faultyAgent) round() {
	f.t.Helper()
	for range faultsAtOnce {
		d := f.fault()
		f.note("%s", faultText(&d))
		f.proxy.Disturb(d)
		f.act()
		time.Sleep(time.Duration(f.r.IntN(200)) * time.Millisecond)
		f.live()
	}
	f.came += faultsAtOnce - f.proxy.Calm()
	f.proxy.Break()
	f.live()
	f.note("calm")
	f.settle()
}

// fault returns a random fault of a call, or of one of the calls that only an agent makes.
func (f *faultyAgent) fault() runtimetest.Disturbance {
	d := randomFault(f.r, f.dies())
	if f.r.IntN(3) == 0 {
		methods := []string{"GetContainerEvents", "ListPodSandbox", "Version", "Status", "ListContainers"}
		d.Method, d.Nth = methods[f.r.IntN(len(methods))], 1
	}
	return d
}

// act makes a random change beside the faults.
func (f *faultyAgent) act() {
	f.t.Helper()
	name := fmt.Sprintf("faulty-%d", f.r.IntN(faultyPods))
	switch n := f.r.IntN(12); {
	case n < 4:
		f.edit(name)
	case n == 4:
		f.remove(name)
	case n == 5:
		f.flicker(name)
	case n == 6:
		f.hide()
	case n == 7:
		f.kill(name)
	case n < 10:
		f.note("the connection breaks")
		f.proxy.Break()
	}
}

func (f *faultyAgent) file(name string) string { return filepath.Join(f.agent.dir, name+".yaml") }

// edit gives a pod another manifest, in place or by renaming a new file.
func (f *faultyAgent) edit(name string) {
	f.t.Helper()
	text, containers := randomPod(f.r, name)
	f.note("edit %s: %v", name, containers)
	f.wanted[name] = containers
	delete(f.kept, name)
	if f.r.IntN(2) == 0 {
		f.agent.put(f.t, name+".yaml", text)
		return
	}
	f.agent.put(f.t, name+".yaml~", text)
	f.move(f.file(name)+"~", f.file(name))
}

func (f *faultyAgent) move(from, to string) {
	f.t.Helper()
	if err := os.Rename(from, to); err != nil {
		f.t.Fatal(err)
	}
}

func (f *faultyAgent) remove(name string) {
	f.t.Helper()
	if f.wanted[name] == nil {
		return
	}
	f.note("remove %s", name)
	delete(f.wanted, name)
	delete(f.kept, name)
	if err := os.Remove(f.file(name)); err != nil {
		f.t.Fatal(err)
	}
}

// flicker removes a file for less than the two seconds for which its pod is kept.
func (f *faultyAgent) flicker(name string) {
	f.t.Helper()
	if f.wanted[name] == nil {
		return
	}
	f.note("%s flickers", name)
	f.move(f.file(name), f.file(name)+"~")
	time.Sleep(time.Duration(f.r.IntN(800)) * time.Millisecond)
	f.move(f.file(name)+"~", f.file(name))
}

// hide removes the whole directory for a moment.
func (f *faultyAgent) hide() {
	f.t.Helper()
	f.note("the directory flickers")
	f.move(f.agent.dir, f.agent.dir+"~")
	time.Sleep(time.Duration(f.r.IntN(800)) * time.Millisecond)
	f.move(f.agent.dir+"~", f.agent.dir)
}

// kill stops a container of a pod. The edit after it keeps the restart delay short.
func (f *faultyAgent) kill(name string) {
	f.t.Helper()
	for container, ids := range f.m.allIDs(f.t, name) {
		f.note("%s of %s dies", container, name)
		_, _ = f.m.cri.StopContainer(f.t.Context(), &runtimeapi.StopContainerRequest{ContainerId: ids[0]}) // It may have ended.
		f.edit(name)
		return
	}
}

// settle waits until exactly the pods with a file run, as their files describe. Then it checks that the containers of
// untouched pods are unchanged.
func (f *faultyAgent) settle() {
	f.t.Helper()
	for end := time.Now().Add(patient(faultyRest)); ; time.Sleep(patient(200 * time.Millisecond)) {
		f.live()
		wrong := f.wrong()
		if wrong == "" {
			break
		}
		if time.Now().After(end) {
			f.t.Fatalf("not at rest: %s\n%s", wrong, f.m.run(f.t, "agent", "status").stdout)
		}
	}
	for name, before := range f.kept {
		if now := f.m.ids(f.t, name); !sameMap(before, now) {
			f.t.Errorf("pod %s has containers %v, want %v: it was not changed", name, now, before)
		}
	}
	for name := range f.wanted {
		f.kept[name] = f.m.ids(f.t, name)
	}
	f.note("at rest: %v", f.kept)
}

// wrong describes the first difference from the wanted state. It is empty if there is none.
func (f *faultyAgent) wrong() string {
	f.t.Helper()
	if left := f.left(); left != "" {
		return left
	}
	for _, name := range slices.Sorted(maps.Keys(f.wanted)) {
		ids := f.m.allIDs(f.t, name)
		for container, all := range ids {
			if len(all) > 1 {
				return fmt.Sprintf("%s of %s runs as %v", container, name, all)
			}
		}
		if want := slices.Sorted(slices.Values(f.wanted[name])); !slices.Equal(slices.Sorted(maps.Keys(ids)), want) {
			return fmt.Sprintf("%s runs %v, want %v", name, ids, want)
		}
		if ready := f.m.sandboxes(f.t, name, runtimeapi.PodSandboxState_SANDBOX_READY); len(ready) != 1 {
			return fmt.Sprintf("%s has the ready sandboxes %v", name, ready)
		}
		if r := f.m.run(f.t, "plan", "--exit-code", f.file(name)); r.code != 0 {
			return fmt.Sprintf("%s does not match its file: exit code %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	return ""
}

// left describes leftovers of pods without a file. It is empty if there are none.
func (f *faultyAgent) left() string {
	f.t.Helper()
	if dirs := glob(f.t, filepath.Join(f.m.state, "pods", "*")); len(dirs) != len(f.others)+len(f.wanted) {
		return fmt.Sprintf("pod directories %v, want those of %v", dirs, slices.Sorted(maps.Keys(f.wanted)))
	}
	for i := range faultyPods {
		name := fmt.Sprintf("faulty-%d", i)
		if f.wanted[name] == nil && (!f.m.isGone(f.t, name) || len(f.m.records(f.t, name)) > 0) {
			return name + " still exists"
		}
	}
	return ""
}

// end removes all files, and checks that nothing is left.
func (f *faultyAgent) end() {
	f.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(f.wanted)) {
		f.remove(name)
	}
	f.settle()
	f.agent.stop(f.t)
	if locks := glob(f.t, filepath.Join(f.m.state, "locks", "*")); len(locks) > len(f.others)+1 {
		f.t.Errorf("locks are left: %v", locks)
	}
}
