package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// handOver is a cluster whose node changes between a kubelet and podctl agent, and the pods in its namespace.
type handOver struct {
	*cluster

	kubelet *process
	// added is how many pods of each kind there are.
	added int
}

// kinds maps the kinds of pods of testdata/cluster/takeover.yaml and of static pods to their phase and their condition
// Ready.
var kinds = map[string][2]string{
	"plain": ready, "inits": ready, "config": ready, "secret": ready, "token": ready, "volumes": ready, "probes": ready,
	"port": ready, "host": ready, "security": ready, "guaranteed": ready, "level": ready, "resized": ready, "hooks": ready,
	"again": ready, "class": ready, "claim": ready, "debugged": ready, "deployed": ready, "static": ready, "hashed": ready,
	"unready":   {"Running", "False"},
	"waiting":   {"Pending", "False"},
	"onfailure": {"Running", "False"},
	"finished":  {"Succeeded", "False"},
	"failed":    {"Failed", "False"},
}

var ready = [2]string{"Running", "True"}

// byKubelet is how many pods of each kind a kubelet has started first. hashed are static pods without a uid.
const byKubelet = 2

// staticPod is the manifest of a static pod: its number, its namespace, its kind and further metadata.
const staticPod = `apiVersion: v1
kind: Pod
metadata: {name: %[3]s-%[1]d, namespace: %[2]s, labels: {kind: %[3]s}%[4]s}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: memory, emptyDir: {medium: Memory}}]
  containers:
  - name: app
    image: ` + webImage + `
    readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 2, timeoutSeconds: 5}
    volumeMounts: [{name: memory, mountPath: /memory}]
`

// TestNodeTakeOver lets a kubelet and podctl agent take over a node from each other, with the same root directory,
// kubeconfig and name, while the API server and the controllers run. No container restarts, no pod is deleted, and no
// status changes.
func TestNodeTakeOver(t *testing.T) {
	c := startCluster(t)
	c.apply(t, "network.yaml")
	c.rollout(t, "-n", "kube-system", "daemonset/network")
	c.must(t, "wait", "node", nodeName, "--for", "condition=Ready", "--timeout", patience.String())
	c.apply(t, "proxy.yaml")
	c.rollout(t, "-n", "kube-system", "daemonset/kube-proxy")
	c.mustWith(t, `{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "takeover"},
		"handler": "test-handler", "overhead": {"podFixed": {"cpu": "1m", "memory": "2Mi"}}}`, "create", "-f", "-")
	t.Run("pods", c.testTakeOver) // a part, because its cleanup needs the node
}

func (c *cluster) testTakeOver(t *testing.T) {
	h := &handOver{cluster: c.in(t, "takeover")}
	t.Cleanup(func() { h.removeStatic(t) })
	h.toKubelet(t)
	h.addPods(t, 0)
	h.addPods(t, 1)
	h.keeps(t, "kubelet to podctl", h.toPodctl, changesByPodctl)
	h.addPods(t, 2)
	time.Sleep(young)
	h.keeps(t, "podctl to kubelet", h.toKubelet, changesByKubelet)
	h.keeps(t, "kubelet to podctl again", h.toPodctl, changesByPodctl)
	h.restarts(t, 2)
	h.removesOrphans(t)
}

// young is the age up to which a kubelet that starts does not keep a container ready (kubelet:
// kubeletRestartGracePeriod), and a second for the time of its start.
const young = 11 * time.Second

// firstReports matches the condition Ready of the Node before and after the first list of containers.
const firstReports = `the node: Ready is (False: \S+ PLEG is not healthy: pleg has yet to be successful$|True: )`

// changesByPodctl and changesByKubelet map patterns of expected changes to their reasons.
var (
	changesByPodctl = map[string]string{
		`/(finished|failed)-\S+: ips was "\[\]"`: "podctl knows the addresses of pods that have ended",
	}
	changesByKubelet = map[string]string{
		firstReports: "on a busy machine, the Node is not ready until the kubelet has listed its containers",
		`/(static|hashed)-\d-\S+: (condition|start) `:   "a kubelet counts times of static pods from its start",
		`/(static|hashed)-\d-\S+: app ready was `:       "a kubelet does not know that static pods were ready before",
		`/(finished|failed)-\S+: ips was .*, is "\[\]"`: "a kubelet forgets the addresses of pods that have ended",
		`-2: condition PodResizeInProgress `:            "a kubelet has no record of resources that podctl has applied",
	}
)

// reasonOf returns the reason of an expected change.
func reasonOf(line string, expected map[string]string) string {
	for pattern, reason := range expected {
		if regexp.MustCompile(pattern).MatchString(line) {
			return reason
		}
	}
	return ""
}

// toKubelet replaces podctl with a kubelet.
func (h *handOver) toKubelet(t *testing.T) {
	t.Helper()
	h.agent.end(t)
	h.kubelet = h.startKubelet(t)
	h.awaitVersion(t, h.kubelet, `^v[\d.]+$`)
}

// toPodctl replaces the kubelet with podctl.
func (h *handOver) toPodctl(t *testing.T) {
	t.Helper()
	h.kubelet.end(t)
	h.startAgent(t)
	h.awaitVersion(t, h.agent, `^v[\d.]+\+podctl`)
}

// addPods creates a pod of each kind, and waits until all have their expected state.
func (h *handOver) addPods(t *testing.T, number int) {
	t.Helper()
	began := time.Now()
	text := strings.ReplaceAll(read(t, filepath.Join(clusterFiles, "takeover.yaml")), "NUMBER", fmt.Sprint(number))
	h.mustWith(t, text, "apply", "-f", "-")
	uid := fmt.Sprintf(", uid: 0c7e6f3a-1d0c-4a53-9d4e-00000000000%d", number)
	write(t, h.staticFile("static", number), fmt.Sprintf(staticPod, number, h.namespace, "static", uid))
	if number < byKubelet { // A kubelet recreates a pod whose uid podctl has derived.
		write(t, h.staticFile("hashed", number), fmt.Sprintf(staticPod, number, h.namespace, "hashed", ""))
	}
	name := func(kind string) string { return fmt.Sprintf("%s-%d", kind, number) }
	for _, kind := range []string{"debugged", "resized"} {
		h.ready(t, name(kind))
	}
	h.must(t, "debug", name("debugged"), "--image", webImage, "--container", "debugger", "--attach=false", "--",
		"sleep", "1000000")
	h.must(t, "patch", "pod", name("resized"), "--subresource", "resize", "-p", `{"spec": {"containers": [
		{"name": "app", "resources": {"requests": {"cpu": "15m"}, "limits": {"cpu": "200m", "memory": "70Mi"}}}]}}`)
	deployed := h.must(t, "get", "pods", "-l", "app="+name("deployed"), "-o", "jsonpath={.items[0].metadata.name}")
	h.must(t, "patch", "pod", deployed, "--subresource", "status", "-p",
		`{"status": {"conditions": [{"type": "example.com/gate", "status": "True"}]}}`)
	h.added++
	until(t, func() string { return h.complaint(t, h.added) })
	t.Logf("pods %d have their state after %s", number, time.Since(began).Round(time.Second))
}

func (h *handOver) staticFile(kind string, number int) string {
	return h.path(fmt.Sprintf("manifests/%s-%d.yaml", kind, number))
}

// removeStatic removes the files of static pods, so that the namespace can be deleted.
func (h *handOver) removeStatic(t *testing.T) {
	t.Helper()
	for number := range 3 {
		for _, kind := range []string{"static", "hashed"} {
			if err := os.Remove(h.staticFile(kind, number)); err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
		}
	}
	h.must(t, "delete", "persistentvolumes", "-l", "test=takeover", "--wait=false")
}

// complaint returns a pod that has not its expected state, if each kind must have a number of pods.
func (h *handOver) complaint(t *testing.T, each int) string {
	t.Helper()
	found := map[string]int{}
	for _, p := range h.pods(t) {
		if p.Namespace != h.namespace {
			continue
		}
		kind := p.Labels["kind"]
		found[kind]++
		if got := [2]string{string(p.Status.Phase), conditionOf(p, v1.PodReady)}; got != kinds[kind] {
			return fmt.Sprintf("pod %s: %v, want %v", p.Name, got, kinds[kind])
		}
		if kind == "debugged" && (len(p.Status.EphemeralContainerStatuses) == 0 ||
			p.Status.EphemeralContainerStatuses[0].State.Running == nil) {
			return p.Name + " has no debug container"
		}
		if kind == "resized" && !resized(p) {
			return p.Name + " is not resized"
		}
	}
	for kind := range kinds {
		want := each
		if kind == "hashed" {
			want = min(each, byKubelet)
		}
		if found[kind] != want {
			return fmt.Sprintf("%d pods of kind %s, want %d", found[kind], kind, want)
		}
	}
	return ""
}

// resized reports whether a pod has its new resources.
func resized(p *v1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == "app" {
			return c.Resources != nil && c.Resources.Limits.Memory().String() == "70Mi"
		}
	}
	return false
}

// keeps checks that all pods and their records stay as they are while the node changes its program, and after that.
func (h *handOver) keeps(t *testing.T, what string, change func(t *testing.T), expected map[string]string) {
	t.Helper()
	before, runs := h.pods(t), h.node.records(t)
	w := h.watch(t)
	change(t)
	time.Sleep(settled)
	w.end(t)
	reasons := map[string]int{}
	for _, line := range w.changes(before) {
		if reason := reasonOf(line, expected); reason != "" {
			reasons[reason]++
		} else {
			t.Errorf("%s: %s", what, line)
		}
	}
	for reason, n := range reasons {
		t.Logf("%s: %d changes: %s", what, n, reason)
	}
	until(t, func() string { return h.complaint(t, h.added) })
	sameRuns(t, runs, h.node.records(t))
	t.Logf("%s: %d pods, %d versions of them, %d of the node", what, len(before), len(w.pods), len(w.nodes))
}

// settled is how long the pods are watched after a change. A kubelet resends all statuses after ten seconds, and podctl
// compares them every ten.
const settled = 30 * time.Second

// restarted are the kinds of pods whose containers restart after the takeovers.
var restarted = []string{"volumes", "claim", "token", "host", "static"}

// restarts ends containers of some kinds, which start again with their volumes and their restart counts.
func (h *handOver) restarts(t *testing.T, number int) {
	t.Helper()
	counts, runs := map[string]int32{}, h.node.records(t)
	for _, p := range h.pods(t) {
		if p.Namespace != h.namespace || !slices.Contains(restarted, p.Labels["kind"]) ||
			!strings.Contains(p.Name+"-", fmt.Sprintf("-%d-", number)) {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running != nil {
				counts[p.Name+"/"+c.Name] = c.RestartCount
				_, id, _ := strings.Cut(c.ContainerID, "://")
				if runs[id] == "" {
					t.Errorf("%s %s has no record", p.Name, c.Name)
					continue
				}
				h.node.stop(t, id)
			}
		}
	}
	until(t, func() string {
		for _, p := range h.pods(t) {
			for _, c := range p.Status.ContainerStatuses {
				if before, ended := counts[p.Name+"/"+c.Name]; ended && (c.RestartCount != before+1 || c.State.Running == nil) {
					return fmt.Sprintf("%s %s: %d restarts after %d, %v", p.Name, c.Name, c.RestartCount, before, c.State)
				}
			}
		}
		return ""
	})
	until(t, func() string { return h.complaint(t, h.added) })
	h.prints(t, "/disk\n/part\n/memory\n", "exec", fmt.Sprintf("volumes-%d", number), "--",
		"cat", "/disk/kept", "/part/kept", "/memory/kept")
}

// orphan is a pod that needs a second to stop, and that has a volume.
const orphan = `apiVersion: v1
kind: Pod
metadata: {name: orphan}
spec:
  terminationGracePeriodSeconds: 3
  volumes: [{name: memory, emptyDir: {medium: Memory}}]
  containers:
  - name: app
    image: ` + webImage + `
    lifecycle: {preStop: {exec: {command: [sh, -c, "echo stopped > /memory/log; sleep 1"]}}}
    volumeMounts: [{name: memory, mountPath: /memory}]
`

// removesOrphans checks that podctl removes what a kubelet has left of pods that the API server does not have any more:
// one that was deleted while neither program ran, and those that had finished before podctl took over, whose logs can
// be read until they are deleted.
func (h *handOver) removesOrphans(t *testing.T) {
	t.Helper()
	h.toKubelet(t)
	h.mustWith(t, orphan, "apply", "-f", "-")
	h.ready(t, "orphan")
	uid := h.must(t, "get", "pod", "orphan", "-o", "jsonpath={.metadata.uid}")
	h.kubelet.end(t)
	h.must(t, "delete", "pod", "orphan", "--grace-period=0", "--force")
	runs := h.node.records(t)
	runs.idOf(t, h.namespace+"/orphan/app")
	h.startAgent(t)
	h.awaitVersion(t, h.agent, `^v[\d.]+\+podctl`)
	h.awaitNoRecords(t, "orphan")
	until(t, func() string {
		if left, _ := filepath.Glob(h.path("pods/" + uid)); len(left) > 0 {
			return "its directory is left"
		}
		return ""
	})
	h.prints(t, "done\n", "logs", "job/finished-0")
	h.must(t, "delete", "job/finished-0", "pod/failed-0")
	h.awaitNoRecords(t, "finished-0-", "failed-0")
	now := h.node.records(t)
	for id, what := range runs {
		if strings.HasSuffix(what, running) && now[id] != what && !strings.HasPrefix(what, h.namespace+"/orphan/") {
			t.Errorf("%s %.12s: now %q", what, id, now[id])
		}
	}
}

// awaitNoRecords waits until the runtime has no records of pods whose names begin like this.
func (h *handOver) awaitNoRecords(t *testing.T, names ...string) {
	t.Helper()
	until(t, func() string {
		for _, what := range h.node.records(t) {
			for _, name := range names {
				if strings.HasPrefix(what, h.namespace+"/"+name) {
					return what + " is left"
				}
			}
		}
		return ""
	})
}
