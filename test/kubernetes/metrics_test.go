package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// measuredPods are the pods whose metrics are compared: with limits, probes, volumes and a restart, without any of them,
// in the host's network, and one that has ended.
func measuredPods() []measuredPod {
	return []measuredPod{
		{"full", object{
			"volumes": []object{
				{"name": "data", "emptyDir": object{}},
				{"name": "memory", "emptyDir": object{"medium": "Memory"}},
				{"name": "texts", "configMap": object{"name": "texts"}},
				{"name": "host", "hostPath": object{"path": "/var/tmp"}},
				{"name": "self", "downwardAPI": object{"items": []object{
					{"path": "name", "fieldRef": object{"fieldPath": "metadata.name"}},
				}}},
			},
			"initContainers": []object{{
				"name": "first", "image": firstImage, "args": []string{"write", "/data/x", "yes"},
				"volumeMounts": []object{{"name": "data", "mountPath": "/data"}},
			}},
			"containers": []object{
				{
					"name": "main", "image": firstImage, "args": []string{"serve", "--http", ":8080"},
					"resources": object{
						"requests": object{"cpu": "50m", "memory": "32Mi"}, "limits": object{"cpu": "500m", "memory": "128Mi"},
					},
					"livenessProbe":  object{"httpGet": object{"path": "/healthz", "port": 8080}, "periodSeconds": 1},
					"readinessProbe": object{"httpGet": object{"path": "/readyz", "port": 8080}, "periodSeconds": 1},
					"volumeMounts": []object{
						{"name": "data", "mountPath": "/data"},
						{"name": "memory", "mountPath": "/memory"},
						{"name": "texts", "mountPath": "/texts"},
						{"name": "host", "mountPath": "/host"},
						{"name": "self", "mountPath": "/self"},
					},
				},
				{"name": "second", "image": firstImage, "args": []string{"sleep"}},
			},
		}},
		{"plain", object{"containers": []object{{"name": "main", "image": firstImage, "args": []string{"sleep"}}}}},
		{"host", object{
			"hostNetwork": true, "containers": []object{{"name": "main", "image": firstImage, "args": []string{"sleep"}}},
		}},
		{"ended", object{
			"restartPolicy": "Never", "containers": []object{{"name": "main", "image": firstImage, "args": []string{"exit", "0"}}},
		}},
	}
}

// measuredPod is a pod by its name and spec.
type measuredPod struct {
	name string
	spec object
}

// text returns the document of the pod, which is bound to the node.
func (p measuredPod) text(t *testing.T) string {
	t.Helper()
	p.spec["nodeName"], p.spec["terminationGracePeriodSeconds"] = nodeName, 2
	p.spec["automountServiceAccountToken"] = false
	text, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": p.name}, "spec": p.spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// scraped are the documents of one node by their paths.
type scraped map[string]string

// scrapedPaths are the paths that are compared.
func scrapedPaths() []string {
	return []string{"/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes", "/stats/summary"}
}

// TestMetricsBesideKubelet compares the metrics and statistics of podctl agent and of a kubelet with the same pods.
func TestMetricsBesideKubelet(t *testing.T) {
	n := newNode(t)
	// A kubelet's cAdvisor knows containers only at containerd's own address.
	const theirs = "/run/containerd/containerd.sock"
	if err := errors.Join(os.MkdirAll(filepath.Dir(theirs), 0o755), os.Symlink(socket, theirs)); err != nil {
		t.Fatal(err)
	}
	m := &measurement{node: n, api: n.startServer(t), dir: t.TempDir()}
	m.api.makeNamespace(t, namespace)
	m.api.request(t, http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts"}, "data": {"a": "b"}}`)
	m.watch = watchPods(t)
	found := map[string]scraped{}
	for _, name := range []string{"kubelet", "podctl"} {
		found[name] = m.scrape(t, name)
	}
	if dir := os.Getenv("METRICS_LOGS"); dir != "" {
		for name, documents := range found {
			for path, text := range documents {
				write(t, filepath.Join(dir, name+strings.ReplaceAll(path, "/", "-")), text)
			}
		}
	}
	compareScraped(t, found["kubelet"], found["podctl"])
}

// scrape runs the pods on one node, and returns its pages of metrics and its summary.
func (m *measurement) scrape(t *testing.T, name string) scraped {
	t.Helper()
	program := m.beginAuthorized(t, name)
	m.api.awaitNode(t, program)
	began := time.Now()
	for _, pod := range measuredPods() {
		m.call(t, http.MethodPost, "", pod.text(t))
	}
	for _, pod := range measuredPods() {
		expected := isRunning
		if pod.name == "ended" {
			expected = hasEnded
		}
		m.watch.untilSince(t, pod.name, began, expected)
	}
	// A kubelet measures every 10 s, and volumes and disks every minute.
	time.Sleep(70 * time.Second)
	documents := scraped{}
	for _, path := range scrapedPaths() {
		documents[path] = fetchAll(t, path)
	}
	// podctl knows the current usage of processors after the second request.
	time.Sleep(11 * time.Second)
	documents["/stats/summary"] = fetchAll(t, "/stats/summary")
	for _, pod := range measuredPods() {
		m.remove(t, pod.name)
	}
	for _, pod := range measuredPods() {
		m.watch.untilSince(t, pod.name, began, isGone)
	}
	program.end(t)
	return documents
}

// beginAuthorized starts podctl agent or a kubelet, with the access control of a cluster.
func (m *measurement) beginAuthorized(t *testing.T, name string) *process {
	t.Helper()
	if name == "podctl" {
		return m.startAgent(t, m.api, m.dir, "--eviction=false", "--applied=false", "--authorization-mode", "Webhook")
	}
	write(t, filepath.Join(m.dir, "manifests", ".empty"), "")
	return m.startKubelet(t, m.dir, m.api,
		"--anonymous-auth=false", "--authentication-token-webhook", "--authorization-mode", "Webhook").process
}

// fetchAll returns a document of the node's server.
func fetchAll(t *testing.T, path string) string {
	t.Helper()
	text, err := fetch(t.Context(), "https://"+nodeIP+":10250"+path, token)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
