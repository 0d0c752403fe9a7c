package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// besidePods is the number of pods that run while the memory is measured.
	besidePods = 10
	// besideRounds is the number of pods whose times are measured, half of them at once after the pod before, and half
	// after besidePause, when a node has removed the containers of the pod before.
	besideRounds = 40
	besidePause  = 2 * time.Second
	// besideRest is how long a node rests before its memory and its requests are read.
	besideRest = 20 * time.Second
	namespace  = "beside"
)

// figures are the measurements of one node.
type figures struct {
	// running is the time from the answer to the creation of a bound pod until its phase Running is in the API, and next
	// the same for a pod that is created as soon as the pod before is gone. ended is the time from the end of a container
	// until that is in the API. deleted is the time from the answer to the deletion of a finished pod until it is gone.
	// All are in milliseconds.
	running, next, ended, deleted []float64
	// memory is the resident memory of the program in MiB, with besidePods pods.
	memory []float64
	// requests is the number of requests for one pod, from its creation until it is gone, without events.
	requests []float64
	// restart is the number of statuses that the program sends when it is restarted.
	restart []float64
}

// TestBesideKubelet measures podctl agent and a kubelet as a node, twice in turn. It checks only that both do the work:
// the figures are for people.
func TestBesideKubelet(t *testing.T) {
	found := map[string]*figures{"podctl": {}, "kubelet": {}}
	for _, name := range []string{"podctl", "kubelet", "podctl", "kubelet"} {
		t.Run(name, func(t *testing.T) {
			m := newNode(t).measure(t, name)
			m.figures = found[name]
			m.run(t)
		})
	}
	if !t.Failed() && len(found["podctl"].memory) > 0 && len(found["kubelet"].memory) > 0 {
		t.Log("\n" + besideTable(found["podctl"], found["kubelet"]))
	}
}

// measure returns the measurement of podctl agent or a kubelet on a node with a new API server.
func (n *node) measure(t *testing.T, name string) *measurement {
	t.Helper()
	m := &measurement{node: n, api: n.startServer(t), dir: t.TempDir(), figures: &figures{}}
	m.begin = func() *process { return m.beginNode(t, name) }
	return m
}

// beginNode starts podctl agent or a kubelet.
func (m *measurement) beginNode(t *testing.T, name string) *process {
	t.Helper()
	if name == "podctl" {
		return m.startAgent(t, m.api, m.dir, "--eviction=false", "--applied=false")
	}
	write(t, filepath.Join(m.dir, "manifests", ".empty"), "")
	return m.startKubelet(t, m.dir, m.api).process
}

// besideTable shows the figures of both nodes with their ratios.
func besideTable(podctl, kubelet *figures) string {
	var b strings.Builder
	b.WriteString("| measured | podctl | kubelet | ratio |\n|---|---|---|---|\n")
	row := func(what, unit string, p, k []float64) {
		fmt.Fprintf(&b, "| %s | %.0f %s | %.0f %s | %.2f |\n", what, median(p), unit, median(k), unit, median(p)/median(k))
	}
	row("pod bound → Running", "ms", podctl.running, kubelet.running)
	row("the same, as soon as the pod before is gone", "ms", podctl.next, kubelet.next)
	row("container exit → status in the API", "ms", podctl.ended, kubelet.ended)
	row("finished pod deleted → gone", "ms", podctl.deleted, kubelet.deleted)
	row(fmt.Sprintf("memory with %d pods", besidePods), "MiB", podctl.memory, kubelet.memory)
	row("requests for one pod, without events", "", podctl.requests, kubelet.requests)
	row("statuses sent at a restart", "", podctl.restart, kubelet.restart)
	return b.String()
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// measurement measures one node.
type measurement struct {
	*node
	*figures

	api   *apiServer
	dir   string
	begin func() *process
	watch *podWatch
}

// beginWith starts the program of the node, and waits until the node has been at rest with running pods.
func (m *measurement) beginWith(t *testing.T, pods int) *process {
	t.Helper()
	program := m.begin()
	m.api.awaitNode(t, program)
	m.api.makeNamespace(t, namespace)
	m.watch = watchPods(t)
	for i := range pods {
		m.create(t, "kept-"+strconv.Itoa(i), "Always")
	}
	for i := range pods {
		m.watch.until(t, "kept-"+strconv.Itoa(i), isRunning)
	}
	time.Sleep(besideRest)
	return program
}

// idleUsage returns the processor time that a process uses while nothing happens, in percent of one processor.
func idleUsage(t *testing.T, pid int) float64 {
	t.Helper()
	used := processorTime(t, pid)
	time.Sleep(idleTime)
	return 100 * (processorTime(t, pid) - used).Seconds() / idleTime.Seconds()
}

func (m *measurement) run(t *testing.T) {
	t.Helper()
	program := m.beginWith(t, besidePods)
	m.memory = append(m.memory, residentMemory(t, program.cmd.Process.Pid))
	before := m.requestCount(t, statusRequests)
	program.end(t)
	program = m.begin()
	m.api.awaitNode(t, program)
	time.Sleep(besideRest)
	m.restart = append(m.restart, m.requestCount(t, statusRequests)-before)
	for i := range besidePods {
		m.remove(t, "kept-"+strconv.Itoa(i))
	}
	for i := range besidePods {
		m.watch.until(t, "kept-"+strconv.Itoa(i), isGone)
	}
	before = m.requestCount(t, podRequests)
	for i := range besideRounds {
		starts := &m.next
		if i%2 == 0 {
			time.Sleep(besidePause)
			starts = &m.running
		}
		m.measurePod(t, "pod-"+strconv.Itoa(i), starts)
	}
	m.requests = append(m.requests, (m.requestCount(t, podRequests)-before)/besideRounds-2)
}

// measurePod measures the life of one pod. Its container is killed in the runtime. The time of its start is added to
// starts.
func (m *measurement) measurePod(t *testing.T, name string, starts *[]float64) {
	t.Helper()
	began := m.create(t, name, "Never")
	*starts = append(*starts, milliseconds(m.watch.until(t, name, isRunning).Sub(began)))
	id := m.records(t).idOf(t, namespace+"/"+name+"/main")
	m.stop(t, id)
	status, err := m.cri.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		t.Fatal(err)
	}
	end := time.Unix(0, status.GetStatus().GetFinishedAt())
	m.ended = append(m.ended, milliseconds(m.watch.until(t, name, hasEnded).Sub(end)))
	began = m.remove(t, name)
	m.deleted = append(m.deleted, milliseconds(m.watch.until(t, name, isGone).Sub(began)))
}

// milliseconds converts a duration. A change can be visible before the answer to the request that made it.
func milliseconds(d time.Duration) float64 { return float64(max(d, 0)) / float64(time.Millisecond) }

const besidePod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {
  "nodeName": "node", "restartPolicy": %q, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 5,
  "containers": [{"name": "main", "image": %q, "imagePullPolicy": "IfNotPresent", "args": ["serve"]}]}}`

// create creates a pod that is bound to the node, and returns when the answer came.
func (m *measurement) create(t *testing.T, name, policy string) time.Time {
	t.Helper()
	return m.call(t, http.MethodPost, "", fmt.Sprintf(besidePod, name, policy, firstImage))
}

// remove deletes a pod, and returns when the answer came.
func (m *measurement) remove(t *testing.T, name string) time.Time {
	t.Helper()
	return m.call(t, http.MethodDelete, "/"+name, "")
}

// call makes a request for a pod, and returns when the answer came.
func (m *measurement) call(t *testing.T, method, path, body string) time.Time {
	t.Helper()
	m.api.request(t, method, "/api/v1/namespaces/"+namespace+"/pods"+path, body)
	return time.Now()
}

// The metrics of the API server count its requests. The tests make two for each pod: they create and delete it.
var (
	podRequests    = regexp.MustCompile(`(?m)^apiserver_request_total\{[^}]*resource="pods"[^}]*\} (\S+)$`)
	statusRequests = regexp.MustCompile(
		`(?m)^apiserver_request_total\{[^}]*resource="pods"[^}]*subresource="status"[^}]*\} (\S+)$`)
)

func (m *measurement) requestCount(t *testing.T, pattern *regexp.Regexp) float64 {
	t.Helper()
	text, err := fetch(t.Context(), serverURL+"/metrics", token)
	if err != nil {
		t.Fatal(err)
	}
	return sumOf(t, text, pattern)
}

// sumOf adds the numbers that a pattern finds in a text.
func sumOf(t *testing.T, text []byte, pattern *regexp.Regexp) float64 {
	t.Helper()
	var sum float64
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// residentMemory returns the resident memory of a process in MiB.
func residentMemory(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("no VmRSS in %s", text)
	}
	kib, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// podWatch keeps when each version of the pods became visible in the API.
type podWatch struct {
	mu       sync.Mutex
	versions map[string][]version
	changed  chan struct{}
}

// version is one event of the watch. pod is nil if the pod is gone.
type version struct {
	pod object
	at  time.Time
}

func isRunning(pod object) bool { return pod != nil && pod.at("status", "phase") == "Running" }

func isGone(pod object) bool { return pod == nil }

// hasEnded reports whether the status shows the end of the container.
func hasEnded(pod object) bool {
	status, _ := pod["status"].(map[string]any)
	list, _ := status["containerStatuses"].([]any)
	for _, one := range list {
		c, _ := one.(map[string]any)
		state, _ := c["state"].(map[string]any)
		if state["terminated"] != nil {
			return true
		}
	}
	return false
}

func watchPods(t *testing.T) *podWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	url := serverURL + "/api/v1/namespaces/" + namespace + "/pods?watch=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	endless := client()
	endless.Timeout = 0
	reply, err := endless.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	w := &podWatch{versions: map[string][]version{}, changed: make(chan struct{}, 1)}
	go func() {
		defer reply.Body.Close() //nolint:errcheck // it was read
		decoder := json.NewDecoder(reply.Body)
		for {
			var event struct {
				Type   string
				Object object
			}
			if decoder.Decode(&event) != nil {
				return
			}
			w.add(event.Type, event.Object)
		}
	}()
	return w
}

func (w *podWatch) add(kind string, pod object) {
	v := version{pod: pod, at: time.Now()}
	if kind == "DELETED" {
		v.pod = nil
	}
	name := pod.at("metadata", "name")
	w.mu.Lock()
	w.versions[name] = append(w.versions[name], v)
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// until waits for a version of a pod, and returns when the first one became visible.
func (w *podWatch) until(t *testing.T, name string, matches func(pod object) bool) time.Time {
	t.Helper()
	return w.untilSince(t, name, time.Time{}, matches)
}

// untilSince does the same for versions that became visible after a time.
func (w *podWatch) untilSince(
	t *testing.T, name string, since time.Time, matches func(pod object) bool,
) time.Time {
	t.Helper()
	limit := time.After(patience)
	for {
		w.mu.Lock()
		for _, v := range w.versions[name] {
			if v.at.After(since) && matches(v.pod) {
				w.mu.Unlock()
				return v.at
			}
		}
		w.mu.Unlock()
		select {
		case <-w.changed:
		case <-limit:
			t.Fatalf("pod %s: nothing after %s: %v", name, patience, w.versions[name])
		}
	}
}
