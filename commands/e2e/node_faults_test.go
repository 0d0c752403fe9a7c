package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// nodeFaults is a node of a cluster whose calls to the API server and to the runtime fail at random, while its pods
// change.
type nodeFaults struct {
	*nodeLab

	r *rand.Rand
	// wanted are the pods that no one has deleted.
	wanted map[string]*v1.Pod
	// kept has the running containers of each pod that the test has not touched since they were last observed.
	kept map[string]string
	made int
	text []string

	// mu guards armed, the next faults of the API server, and calm, which ends silent watches.
	mu    sync.Mutex
	armed []*apiFault
	calm  chan struct{}
	// came counts the faults that occurred. killed has the processes that faults have killed.
	came   atomic.Int32
	killed sync.Map
	// history has the statuses that the API server got.
	history *statusHistory
}

// apiFault is the answer to one of the next requests: those with this method and resource, or any if they are empty.
type apiFault struct {
	method, resource string
	nth              int
	answer           http.HandlerFunc
}

const (
	// nodeFaultsAtOnce is the number of faults before the node must settle, and nodeFaultsRest the limit for that.
	nodeFaultsAtOnce = 30
	nodeFaultsRest   = time.Minute
	nodeFaultsPods   = 6
)

// TestNodeFaults checks that a node loses, duplicates and ends no pod, that no status goes back, and that deleted pods
// leave, whatever fails. PODCTL_TRIALS is the number of faults.
func TestNodeFaults(t *testing.T) {
	count, seed := trials(nodeFaultsAtOnce)
	f := &nodeFaults{
		nodeLab: newNodeLab(t), r: rand.New(rand.NewPCG(seed, 0)), wanted: map[string]*v1.Pod{},
		kept: map[string]string{}, calm: make(chan struct{}), history: newStatusHistory(t),
	}
	defer f.close()
	f.flags = append(f.flags, "--request-timeout", "1s")
	f.answerWith(f.answer)
	f.cluster.server.OnStored(f.history.stored)
	defer func() {
		if t.Failed() {
			last := func(all []string) string { return strings.Join(all[max(0, len(all)-200):], "\n") }
			t.Logf("PODCTL_SEED=%d:\n%s\n%s", seed, last(f.text), last(strings.Split(f.log.String(), "\n")))
		}
	}()
	f.create("steady")
	f.start()
	f.settle()
	for int(f.came.Load()) < count && !t.Failed() {
		f.round()
	}
	t.Logf("%d faults were injected", f.came.Load())
	for name := range f.wanted {
		f.end(name)
	}
	f.settle()
}

func (f *nodeFaults) note(format string, args ...any) {
	f.text = append(f.text, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// round causes faults for a while, and then checks that the node settles.
func (f *nodeFaults) round() {
	f.t.Helper()
	for range nodeFaultsAtOnce {
		f.arm()
		f.act()
		time.Sleep(time.Duration(f.r.IntN(150)) * time.Millisecond)
		f.live()
	}
	f.rest()
	f.note("calm")
	f.settle()
}

// live starts another agent if a fault has killed the last one.
func (f *nodeFaults) live() {
	f.t.Helper()
	select {
	case err := <-f.exited:
		if _, killed := f.killed.Load(f.cmd.Process); !killed {
			f.t.Fatalf("the agent has ended: %v", err)
		}
		f.note("another agent")
		f.launch()
	default:
	}
}

// die returns a function that kills the current agent.
func (f *nodeFaults) die() func() {
	process := f.cmd.Process
	return func() {
		f.killed.Store(process, true)
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			f.t.Error(err)
		}
	}
}

// arm adds a random fault.
func (f *nodeFaults) arm() {
	switch n := f.r.IntN(10); {
	case n < 3:
		d := randomFault(f.r, f.die())
		f.note("%s", faultText(&d))
		f.proxy.Disturb(d)
	case n < 6:
		f.disturb()
	default:
		f.refuse()
	}
}

// disturb kills the agent before or after a change in the API server, or loses the answer.
func (f *nodeFaults) disturb() {
	calls := []string{
		"PATCH pods/status", "PATCH pods/status", "DELETE pods", "PATCH nodes/status", "PUT leases", "POST events", "PATCH events",
	}
	d := apitest.Disturbance{Call: calls[f.r.IntN(len(calls))], Nth: 1 + f.r.IntN(3)}
	die, how := f.die(), f.r.IntN(3)
	switch how {
	case 0:
		d.Before = func() { f.came.Add(1); die() }
	case 1:
		d.After = func() { f.came.Add(1); die() }
	default:
		d.After, d.Lose = func() { f.came.Add(1) }, true
	}
	f.note("%s %d is disturbed (%d)", d.Call, d.Nth, how)
	f.cluster.server.Disturb(d)
}

// refuse lets the API server answer one request badly.
func (f *nodeFaults) refuse() {
	answers := map[string]http.HandlerFunc{
		"conflict": apitest.Refusal(409, metav1.StatusReasonConflict, 0), "gone": apitest.Refusal(410, metav1.StatusReasonExpired, 0),
		"not found": apitest.Refusal(404, metav1.StatusReasonNotFound, 0),
		"busy":      apitest.Refusal(429, metav1.StatusReasonTooManyRequests, 1), "failed": apitest.Refusal(500, "", 0),
		"a page": apitest.Page(502), "cut": apitest.Cut, "disconnect": apitest.Disconnect, "hang": f.hang(),
		"half": apitest.JSON(200, `{"kind":"Pod","apiVersion":"v1","metadata":{`), "killed": f.killing(),
	}
	names := slices.Sorted(maps.Keys(answers))
	name := names[f.r.IntN(len(names))]
	one := &apiFault{answer: answers[name], nth: 1 + f.r.IntN(3)}
	one.method = []string{"", http.MethodGet, http.MethodPatch, http.MethodDelete}[f.r.IntN(4)]
	one.resource = []string{"", "/pods", "/nodes", "/leases/", "/events"}[f.r.IntN(5)]
	f.note("%d. %s %s is answered by: %s", one.nth, one.method, one.resource, name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, one)
}

// killing returns the answer of an API server whose client is killed.
func (f *nodeFaults) killing() http.HandlerFunc {
	die := f.die()
	return func(w http.ResponseWriter, r *http.Request) {
		die()
		apitest.Disconnect(w, r)
	}
}

// answer returns the answer of a fault to a request; nil if there is none.
func (f *nodeFaults) answer(r *http.Request) http.HandlerFunc {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, one := range f.armed {
		if one.method != "" && one.method != r.Method || !strings.Contains(r.URL.Path, one.resource) {
			continue
		}
		if one.nth--; one.nth < 1 {
			f.armed = slices.Delete(f.armed, i, i+1)
			f.came.Add(1)
			return one.answer
		}
	}
	return nil
}

// hang returns the answer of an API server that sends nothing until the faults end.
func (f *nodeFaults) hang() http.HandlerFunc {
	calm := f.calm
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-calm:
		case <-r.Context().Done():
		}
	}
}

// silent returns the answer to a watch without events until the faults end.
func (f *nodeFaults) silent() http.HandlerFunc {
	hang := f.hang()
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		if http.NewResponseController(w).Flush() == nil {
			hang(w, r)
		}
	}
}

// silence lets the next requests for pods, among them watches, be silent.
func (f *nodeFaults) silence() {
	f.note("watches are silent")
	silent := f.silent()
	f.mu.Lock()
	defer f.mu.Unlock()
	for range 2 {
		f.armed = append(f.armed, &apiFault{method: http.MethodGet, resource: "/pods", answer: silent})
	}
}

// rest ends all faults.
func (f *nodeFaults) rest() {
	f.away.Store(false)
	f.proxy.Calm()
	f.proxy.Break()
	f.cluster.server.Calm()
	f.mu.Lock()
	f.armed = nil
	f.mu.Unlock()
	close(f.calm)
	f.calm = make(chan struct{})
	f.live()
}

// act makes a random change beside the faults.
func (f *nodeFaults) act() {
	f.t.Helper()
	name := fmt.Sprintf("p%d", f.r.IntN(nodeFaultsPods))
	switch n := f.r.IntN(16); {
	case n < 5:
		f.create(name)
	case n < 7:
		f.edit(name)
	case n < 9:
		f.end(name)
	case n == 9:
		f.remove(name)
	case n == 10 && f.wanted[name] != nil:
		f.note("%s dies", name)
		f.server.Exit(name, 1)
		f.edit(name)
	case n == 11:
		f.note("the connections to the API server end")
		f.came.Add(1)
		f.cluster.web.CloseClientConnections()
	case n == 12:
		f.silence()
		f.cluster.web.CloseClientConnections()
	case n == 13:
		away := !f.away.Load()
		f.note("away: %t", away)
		f.came.Add(1)
		f.away.Store(away)
	}
}

// create creates a pod, unless there is one with its name.
func (f *nodeFaults) create(name string) {
	f.t.Helper()
	if f.cluster.server.Pod("default", name) != nil {
		return
	}
	pod := hostilePod{}.pod(f.t, name)
	f.made++
	pod.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", f.made))
	pod.Spec.Containers = append(pod.Spec.Containers, *pod.Spec.Containers[0].DeepCopy())
	pod.Spec.Containers[1].Name = name + "-b"
	f.note("create %s %s", name, pod.UID)
	f.wanted[name] = pod
	delete(f.kept, name)
	f.cluster.server.Put(pod)
}

// edit gives a container another image.
func (f *nodeFaults) edit(name string) {
	pod := f.wanted[name]
	if pod == nil {
		return
	}
	pod = pod.DeepCopy()
	pod.Spec.Containers[0].Image = map[string]string{"i:1": "i:2", "i:2": "i:1"}[pod.Spec.Containers[0].Image]
	f.note("edit %s: %s", name, pod.Spec.Containers[0].Image)
	f.wanted[name] = pod
	delete(f.kept, name)
	f.cluster.server.Put(pod)
}

// end begins the deletion of a pod, and remove removes it from the API at once.
func (f *nodeFaults) end(name string) {
	if f.wanted[name] != nil {
		f.note("end %s", name)
		delete(f.wanted, name)
		delete(f.kept, name)
		f.cluster.server.End("default", name, 1)
	}
}

func (f *nodeFaults) remove(name string) {
	f.note("remove %s", name)
	delete(f.wanted, name)
	delete(f.kept, name)
	f.cluster.server.Remove("default", name)
}

// settle waits until the node runs exactly the wanted pods, and the API has their statuses. Then it checks that the
// containers of untouched pods are the same.
func (f *nodeFaults) settle() {
	f.t.Helper()
	for end := time.Now().Add(patient(nodeFaultsRest)); ; time.Sleep(100 * time.Millisecond) {
		f.live()
		wrong := f.wrong()
		if wrong == "" {
			break
		}
		if time.Now().After(end) {
			_, status := f.run([]string{"agent", "status"})
			f.t.Fatalf("not at rest: %s\n%s", wrong, status)
		}
	}
	running := f.containers()
	for name, before := range f.kept {
		if now := running[f.wanted[name].UID].String(); now != before {
			f.t.Errorf("pod %s has %s, want %s: it was not changed", name, now, before)
		}
	}
	for name, pod := range f.wanted {
		f.kept[name] = running[pod.UID].String()
	}
	f.note("at rest: %v", f.kept)
}

// wrong describes the first difference from the wanted state. It is empty if there is none.
func (f *nodeFaults) wrong() string {
	f.t.Helper()
	inAPI := f.cluster.server.Pods()
	if len(inAPI) != len(f.wanted) {
		return fmt.Sprintf("the API has %d pods, want %v", len(inAPI), slices.Sorted(maps.Keys(f.wanted)))
	}
	running := f.containers()
	for _, pod := range inAPI {
		want := f.wanted[pod.Name]
		if want == nil {
			return pod.Name + " is still in the API"
		}
		if text := statusDiffers(pod); text != "" {
			return text
		}
		if text := running[want.UID].differs(want); text != "" {
			return fmt.Sprintf("%s: %s: %s", pod.Name, text, running[want.UID])
		}
	}
	if len(running) != len(f.wanted) {
		return fmt.Sprintf("the runtime has the pods %v", slices.Sorted(maps.Keys(running)))
	}
	dirs, err := filepath.Glob(filepath.Join(f.stateDir, "pods", "*"))
	if err != nil || len(dirs) != len(f.wanted) {
		return fmt.Sprintf("pod directories %v", dirs)
	}
	return ""
}
