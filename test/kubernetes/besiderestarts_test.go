package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// restarts is the number of times that a node's program ends while a client uses its pods.
	restarts = 20
	// restartRest is the time between two restarts: several periods of a probe.
	restartRest = 4 * time.Second
	// servingPods is the number of pods that the client uses in turn.
	servingPods = 3
	// requestEvery is the time between two requests of the client.
	requestEvery = 10 * time.Millisecond
)

// servingPod is a pod whose readiness probe runs every second.
const servingPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {
  "nodeName": "node", "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 5,
  "containers": [{"name": "main", "image": %q, "imagePullPolicy": "IfNotPresent", "args": ["serve"],
    "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1, "timeoutSeconds": 30}}]}}`

// effects is what a client notices of the restarts.
type effects struct {
	// requests is the number of requests that were made. lost counts those without an answer, and those that had no
	// ready pod to go to.
	requests, lost atomic.Int64
	// unready counts the statuses in which a pod that was ready is not. sent counts all statuses that were sent.
	unready, sent float64
}

// TestBesideKubeletRestarts ends the program of a node twenty times, while a client makes a hundred requests per second:
// with SIGTERM, with SIGKILL, and after the program was replaced. podctl must not lose a request, and no pod may become
// unready. The same figures of a kubelet are for people.
func TestBesideKubeletRestarts(t *testing.T) {
	found := map[string]*effects{"podctl": {}, "kubelet": {}}
	for _, name := range []string{"podctl", "kubelet"} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			bin := t.TempDir()
			for _, program := range []string{"podctl", "podctl-node"} {
				replaceProgram(t, filepath.Join(filepath.Dir(n.podctl), program), filepath.Join(bin, program))
			}
			replaceable := *n
			replaceable.podctl = filepath.Join(bin, "podctl")
			replaceable.measure(t, name).restartOften(t, found[name], bin)
		})
	}
	p, k := found["podctl"], found["kubelet"]
	t.Logf("%d restarts\n| measured | podctl | kubelet |\n|---|---|---|\n"+
		"| requests | %d | %d |\n| lost requests | %d | %d |\n| pods that became unready | %.0f | %.0f |\n"+
		"| statuses sent | %.0f | %.0f |\n", restarts, p.requests.Load(), k.requests.Load(), p.lost.Load(), k.lost.Load(),
		p.unready, k.unready, p.sent, k.sent)
	if p.requests.Load() == 0 || p.lost.Load() > 0 || p.unready > 0 || p.sent > 0 {
		t.Error("a restart of podctl has an effect on its pods")
	}
}

// replaceProgram puts a copy of a program in the place of another one, which may run.
func replaceProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it was read
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err = out.Close(); err != nil {
		t.Fatal(err)
	}
	if err = os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// restartOften restarts the program while a client uses the pods.
func (m *measurement) restartOften(t *testing.T, e *effects, bin string) {
	t.Helper()
	program := m.begin()
	m.api.awaitNode(t, program)
	m.api.makeNamespace(t, namespace)
	m.watch = watchPods(t)
	var names []string
	for i := range servingPods {
		names = append(names, "serving-"+strconv.Itoa(i))
		m.call(t, http.MethodPost, "", fmt.Sprintf(servingPod, names[i], firstImage))
	}
	for _, name := range names {
		m.watch.until(t, name, isReady)
	}
	time.Sleep(restartRest)
	before, unready := m.requestCount(t, statusRequests), m.watch.unready()
	end := m.useServing(e, names)
	for i := range restarts {
		switch i % 3 {
		case 0:
			program.end(t)
		case 1:
			program.cmd.Process.Signal(unix.SIGKILL) //nolint:errcheck // it may have ended
			program.end(t)
		case 2:
			replaceProgram(t, filepath.Join(bin, "podctl-node"), filepath.Join(bin, "podctl-node"))
			program.end(t)
		}
		program = m.begin()
		m.api.awaitNode(t, program)
		time.Sleep(restartRest)
	}
	end()
	e.unready, e.sent = m.watch.unready()-unready, m.requestCount(t, statusRequests)-before
}

// useServing makes requests to the ready pods in turn, as a Service does, until end is called.
func (m *measurement) useServing(e *effects, pods []string) (end func()) {
	stop := make(chan struct{})
	var requests sync.WaitGroup
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	requests.Go(func() {
		tick := time.NewTicker(requestEvery)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			pod := m.watch.newest(pods[i%len(pods)])
			requests.Go(func() { e.request(client, pod) })
		}
	})
	return func() {
		close(stop)
		requests.Wait()
	}
}

// request makes a request to a pod.
func (e *effects) request(client *http.Client, pod object) {
	e.requests.Add(1)
	if !isReady(pod) {
		e.lost.Add(1)
		return
	}
	reply, err := client.Get("http://" + pod.at("status", "podIP") + ":8080/readyz") //nolint:noctx // it has a limit
	if err != nil {
		e.lost.Add(1)
		return
	}
	if err = reply.Body.Close(); err != nil || reply.StatusCode != http.StatusOK {
		e.lost.Add(1)
	}
}

func isReady(pod object) bool { return pod != nil && pod.condition("Ready") == "True" }

// newest returns the newest version of a pod.
func (w *podWatch) newest(name string) object {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.versions[name]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].pod
}

// unready counts the versions of pods that are not ready after a version that is.
func (w *podWatch) unready() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0.0
	for _, versions := range w.versions {
		for i := 1; i < len(versions); i++ {
			if isReady(versions[i-1].pod) && !isReady(versions[i].pod) {
				n++
			}
		}
	}
	return n
}
