package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	weekDays = 7
	// lineAddress is where the node of TestWeek reaches the API server.
	lineAddress = nodeIP + ":7443"
	// weekMetrics serves the metrics of the agent.
	weekMetrics = "127.0.0.1:9100"
	// weekPods is how many pods the test creates at most, beside those of workloads.
	weekPods = 12
)

// week is a node whose API server comes and goes, with pods of all sources.
type week struct {
	*cluster

	rand *rand.Rand
	line *line
	// api is what the API server showed since the last backup was restored.
	api *watcher
	// pods are the pods of the API server by name, and local those of other sources: by file, or applied by hand.
	pods  map[string]*weekPod
	local map[string]*weekPod
	// removed holds the highest number of restarts of removed local pods by name, and one more.
	removed map[string]int32
	// value is the value of the ConfigMap and of the Secret, and made the number of pods that the test has created.
	value, made int
	// backup is a directory with an old state of etcd.
	backup string
	// done counts the events by name.
	done map[string]int
}

// TestWeek lets a node live through a week of random events, compressed into PODCTL_WEEK (five minutes if it is not
// set): the API server stops, loses its newest objects or all of them, or responds slowly; the agent, containerd and
// containers are killed; pods of all sources are created, changed, deleted and evicted. Each day ends with a check that
// the node, the runtime and the API server agree, and that nothing grows. PODCTL_WEEK_SEED repeats the events.
func TestWeek(t *testing.T) {
	lasts, seed := 5*time.Minute, uint64(time.Now().UnixNano())
	var err error
	if text := os.Getenv("PODCTL_WEEK"); text != "" {
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("PODCTL_WEEK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("PODCTL_WEEK=%v PODCTL_WEEK_SEED=%d", lasts, seed)
	w := &week{
		rand: rand.New(rand.NewPCG(seed, 0)),
		pods: map[string]*weekPod{}, local: map[string]*weekPod{}, removed: map[string]int32{},
		done: map[string]int{},
	}
	w.startCluster(t)
	// The namespace must end before the servers, which the outer test stops.
	t.Run("days", func(t *testing.T) {
		w.start(t)
		w.live(t, lasts)
	})
}

// live lets the days pass, and then loses and restores the API server.
func (w *week) live(t *testing.T, lasts time.Duration) {
	t.Helper()
	var uses []weekUsage
	for day := range weekDays {
		for end := time.Now().Add(lasts / weekDays); time.Now().Before(end); {
			w.hour(t)
		}
		if day == 1 {
			w.takeBackup(t)
		}
		w.settle(t)
		uses = append(uses, w.usage(t))
		t.Logf("day %d: %v\n%v", day+1, uses[day], w.done)
	}
	w.loseAll(t)
	w.restore(t)
	w.settle(t)
	compareUsage(t, uses[1], w.usage(t))
	w.cleanUp(t)
	for _, problem := range w.api.close() {
		t.Error(problem)
	}
}

// startCluster starts the cluster with its network. The agent reaches the API server by a line that fails.
func (w *week) startCluster(t *testing.T) {
	t.Helper()
	w.line = startLine(t, lineAddress, nodeIP+":6443")
	c := startCluster(t, func(c *cluster) {
		c.agentServer = "https://" + lineAddress
		c.agentFlags = []string{
			"--listen", weekMetrics, "--eviction=true", "--eviction-hard", "memory.available<50Mi",
			"--container-log-max-size", "256Ki", "--container-log-max-files", "2",
		}
	})
	// Without iptables, sandboxes start in a fraction of the time.
	plain := strings.NewReplacer(
		`"ipMasq": true, `, "", "},\n      "+`{"type": "portmap", "capabilities": {"portMappings": true}}`, "}",
	)
	c.mustWith(t, plain.Replace(read(t, filepath.Join(clusterFiles, "network.yaml"))), "apply", "-f", "-")
	c.rollout(t, "-n", "kube-system", "daemonset/network")
	c.must(t, "wait", "node", nodeName, "--for", "condition=Ready", "--timeout", patience.String())
	w.cluster = c
}

// start starts the workloads.
func (w *week) start(t *testing.T) {
	t.Helper()
	w.cluster = w.in(t, "week")
	w.api = w.startWatcher(t)
	until(t, func() string { return w.call(t, "", "get", "serviceaccount", "default").stderr })
	w.setValue(t)
	for _, o := range [][2]string{{"Deployment", "web"}, {"Service", "db"}, {"StatefulSet", "db"}, {"CronJob", "every-minute"}} {
		w.workload(t, o[0], o[1])
	}
	for _, k := range weekKinds() {
		w.createPod(t, k)
	}
	w.writeFile(t, "file-a")
	w.applyPod(t, "hand-a")
}

// hour is one disturbance and what happens meanwhile.
func (w *week) hour(t *testing.T) {
	begin := w.pick(w.disturbances())
	w.note("%s", begin.name)
	end := begin.run(t)
	for range 1 + w.rand.IntN(5) {
		actions := w.localActions()
		if !begin.withoutServer {
			actions = append(actions, w.userActions()...)
		}
		a := w.pick(actions)
		w.note("%s", a.name)
		if after := a.run(t); after != nil {
			after()
		}
		time.Sleep(time.Duration(w.rand.IntN(2000)) * time.Millisecond)
	}
	if end != nil {
		end()
	}
	if !w.agent.runs() {
		t.Errorf("the agent has ended: %v", w.agent.err)
		w.startAgent(t)
	}
	w.keepScheduler(t)
}

// keepScheduler starts the scheduler again if it has ended. It does so by itself when an outage has left wrong pods in
// its cache.
func (w *week) keepScheduler(t *testing.T) {
	t.Helper()
	if !w.scheduler.runs() {
		w.note("scheduler started again")
		w.startScheduler(t)
	}
}

// weekEvent is something that happens. run returns what ends it, or nil.
type weekEvent struct {
	name string
	// often is the weight of the event.
	often int
	run   func(t *testing.T) func()
	// withoutServer is set for events during which users cannot use the API server.
	withoutServer bool
}

func (w *week) pick(events []weekEvent) weekEvent {
	total := 0
	for _, e := range events {
		total += e.often
	}
	at := w.rand.IntN(total)
	i := slices.IndexFunc(events, func(e weekEvent) bool {
		at -= e.often
		return at < 0
	})
	return events[i]
}

// note writes an event to week.log and counts it.
func (w *week) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	name, _, _ := strings.Cut(text, ":")
	w.done[name]++
	file, err := os.OpenFile(filepath.Join(w.logs, "week.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, _ = fmt.Fprintf(file, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), text)
		_ = file.Close()
	}
}

// request makes a request of a user to the API server. A missing object is not an error. kubectl would take a second
// of processor time for each.
func (w *week) request(t *testing.T, method, path, contentType string, body object) {
	t.Helper()
	text := ""
	if body != nil {
		text = w.json(t, body)
	}
	w.note("%s: %s %.200s", strings.ToLower(method), path, text)
	request, err := http.NewRequestWithContext(t.Context(), method, clusterURL+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	reply, err := w.api.client.Do(request)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	if answer, _ := io.ReadAll(reply.Body); reply.StatusCode >= 300 && reply.StatusCode != http.StatusNotFound {
		t.Errorf("%s %s: %s: %s", method, path, reply.Status, answer)
	}
}

const (
	podsPath    = "/api/v1/namespaces/week/pods"
	webPath     = "/apis/apps/v1/namespaces/week/deployments/web"
	jsonType    = "application/json"
	mergeType   = "application/merge-patch+json"
	strategic   = "application/strategic-merge-patch+json"
	appliedType = "application/apply-patch+yaml"
)

// remove deletes a pod. A negative grace period is that of the pod.
func (w *week) remove(t *testing.T, name string, grace int) {
	t.Helper()
	path := podsPath + "/" + name
	if grace >= 0 {
		path += fmt.Sprintf("?gracePeriodSeconds=%d", grace)
	}
	w.request(t, http.MethodDelete, path, jsonType, nil)
}

// podctl runs podctl on the node.
func (w *week) podctl(t *testing.T, args ...string) string {
	t.Helper()
	args = append(args, "--runtime-endpoint", "unix://"+containerdSocket)
	w.note("podctl: %s", strings.Join(args, " "))
	r := w.node.run(t, args...)
	if r.code != 0 {
		t.Errorf("podctl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// setValue changes the ConfigMap and the Secret.
func (w *week) setValue(t *testing.T) {
	t.Helper()
	w.value++
	for kind, data := range map[string]string{"ConfigMap": "data", "Secret": "stringData"} {
		path := "/api/v1/namespaces/week/" + strings.ToLower(kind) + "s/settings?fieldManager=week"
		w.request(t, http.MethodPatch, path, appliedType, object{
			"apiVersion": "v1", "kind": kind, "metadata": object{"name": "settings"},
			data: object{"text": strconv.Itoa(w.value)},
		})
	}
}

func (w *week) json(t *testing.T, o object) string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (w *week) createPod(t *testing.T, k *weekKind) {
	t.Helper()
	w.made++
	name := fmt.Sprintf("%s-%d", k.name, w.made)
	w.pods[name] = &weekPod{weekKind: k, image: webImage}
	w.request(t, http.MethodPost, podsPath, jsonType, k.document("week", name, webImage))
}

// kill kills the process of a container of a pod, and reports whether there was one.
func (w *week) kill(t *testing.T, namespace, pod string) bool {
	t.Helper()
	for id, what := range w.node.records(t) {
		if what != namespace+"/"+pod+"/app "+running {
			continue
		}
		reply, err := w.node.cri.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
		if err != nil {
			return false
		}
		var info struct{ PID int }
		if json.Unmarshal([]byte(reply.GetInfo()["info"]), &info) == nil && info.PID > 1 {
			return unix.Kill(info.PID, unix.SIGKILL) == nil
		}
	}
	return false
}
