package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pod is one of testdata/pods, with its expected state.
type pod struct {
	namespace, name, phase string
	// ready is the status of the Ready condition.
	ready string
}

func (p pod) key() string { return p.namespace + "/" + p.name }

func pods() []pod {
	return []pod{
		{"default", "several", "Running", "True"},
		{"team", "inits", "Running", "True"},
		{"default", "succeeded", "Succeeded", "False"},
		{"default", "failed", "Failed", "False"},
		{"default", "onfailure", "Running", "False"},
		{"default", "finished", "Succeeded", "False"},
		{"default", "hostnet", "Running", "True"},
		{"default", "guaranteed", "Running", "True"},
		{"default", "volumes", "Running", "True"},
		{"default", "resized", "Running", "True"},
		{"default", "podlevel", "Running", "True"},
		{"default", "failing", "Running", "False"},
	}
}

// TestTakeOver checks that a kubelet takes over podctl's running pods, and that podctl takes them back.
func TestTakeOver(t *testing.T) {
	n := newNode(t)
	t.Run("standalone", func(t *testing.T) { n.takeOver(t, nil) })
	t.Run("registered", func(t *testing.T) {
		api := n.startServer(t)
		api.makeNamespace(t, "team")
		n.takeOver(t, api)
	})
}

// TestAdopt checks that podctl adopts pods that only a kubelet has started, including their sandboxes, without a record
// of them.
func TestAdopt(t *testing.T) {
	n := newNode(t)
	dir, manifests := t.TempDir(), t.TempDir()
	n.applyAll(t, manifests)
	n.exportAll(t, filepath.Join(dir, "manifests"))
	n.deleteAll(t)
	k := n.startKubelet(t, dir, nil)
	until(t, func() string { return complaint(k.pods(t), "-"+nodeName) })
	before := n.records(t)
	k.end(t)
	if r := n.run(t, "plan", "--exit-code", manifests); r.code != 2 || strings.Contains(r.stdout, "to start") {
		t.Errorf("the plan after the kubelet: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	n.must(t, "apply", manifests)
	sameRuns(t, before, n.records(t))
	n.takeBack(t, manifests, before)
	n.stop(t, before.idOf(t, "default/several-"+nodeName+"/web"))
	n.must(t, "apply", "--wait", "--timeout", "1m", filepath.Join(manifests, "several.yaml"))
	n.deleteAll(t)
}

func (n *node) takeOver(t *testing.T, api *apiServer) {
	t.Helper()
	dir, manifests := t.TempDir(), t.TempDir()
	n.applyAll(t, manifests)
	n.exportAll(t, filepath.Join(dir, "manifests"))
	before := n.records(t)

	k := n.handOver(t, dir, api)
	sameRuns(t, before, n.records(t))
	compare(t, n, k, api)
	n.restarts(t, k)
	until(t, func() string { return complaint(k.pods(t), "-"+nodeName) })
	before = n.records(t)
	k.end(t)
	n.takeBack(t, manifests, before)

	// Repeat it: now the kubelet has its own records, and podctl has edited a pod since.
	n.resize(t, manifests, "cpu: 300m", "cpu: 400m")
	n.exportAll(t, filepath.Join(dir, "manifests"))
	before = n.records(t)
	k = n.handOver(t, dir, api)
	sameRuns(t, before, n.records(t))
	k.end(t)
	n.takeBack(t, manifests, before)
	n.deleteAll(t)
}

// handOver starts a kubelet, and returns when it has all pods and has had time to act on them.
func (n *node) handOver(t *testing.T, dir string, api *apiServer) *kubelet {
	t.Helper()
	begin := time.Now()
	k := n.startKubelet(t, dir, api)
	until(t, func() string { return complaint(k.pods(t), "-"+nodeName) })
	if api != nil {
		until(t, func() string { return api.complaint(t) })
	}
	t.Logf("the kubelet has the pods after %s", time.Since(begin).Round(time.Second))
	time.Sleep(calm)
	k.alive(t)
	return k
}

// resize edits a pod so that its container changes in place.
func (n *node) resize(t *testing.T, dir, old, text string) {
	t.Helper()
	path := filepath.Join(dir, "resized.yaml")
	edit(t, path, old, text)
	before := n.records(t).idOf(t, "default/resized/app")
	n.must(t, "apply", path)
	if after := n.records(t).idOf(t, "default/resized/app"); after != before {
		t.Fatal("the resize was not in place")
	}
}

// applyAll applies all pods, waits for their expected states, and fills their volumes.
func (n *node) applyAll(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS("testdata/pods")); err != nil {
		t.Fatal(err)
	}
	n.must(t, "apply", "--wait=started", "--timeout", "3m", dir)
	n.resize(t, dir, "cpu: 200m", "cpu: 300m")
	until(t, func() string {
		n.must(t, "apply", dir)
		return complaint(n.pods(t, "--probe"), "")
	})
	n.must(t, "exec", "several", "-c", "web", "--", "/demo", "write", "/data/kept", "text-1")
	n.must(t, "exec", "volumes", "--", "/demo", "write", "/memory/kept", "text-2")
	n.must(t, "exec", "several", "-c", "worker", "--", "/demo", "write", "/part/kept", "text-3")
}

// complaint returns a pod that is not in its expected state. A kubelet appends its node's name to that of the pod.
func complaint(found []object, suffix string) string { return complaintOf(pods(), found, suffix) }

func complaintOf(wanted []pod, found []object, suffix string) string {
	byName := map[string]object{}
	for _, o := range found {
		byName[o.at("metadata", "namespace")+"/"+o.at("metadata", "name")] = o
	}
	for _, p := range wanted {
		o, known := byName[p.key()+suffix]
		if !known {
			return fmt.Sprintf("pod %s is not among %v", p.key()+suffix, slices.Sorted(maps.Keys(byName)))
		}
		if phase, ready := o.at("status", "phase"), o.condition("Ready"); phase != p.phase || ready != p.ready {
			return fmt.Sprintf("pod %s: %s, Ready %s, want %s, %s\n%v", p.key(), phase, ready, p.phase, p.ready, o["status"])
		}
	}
	return ""
}

// complaint returns the part that is missing at the API server: the node, or a mirror pod for a running pod. For a
// finished pod, a kubelet creates a mirror pod only if it had read the manifest before it registered (kubelet:
// fastStaticPodsRegistration).
func (s *apiServer) complaint(t *testing.T) string {
	t.Helper()
	if s.nodeReady(t) != "True" {
		return "the node is not ready"
	}
	found := s.pods(t)
	for _, o := range found {
		if o.at("metadata", "annotations", "kubernetes.io/config.mirror") == "" {
			return o.at("metadata", "name") + " is no mirror pod"
		}
	}
	wanted := slices.DeleteFunc(pods(), func(p pod) bool { return p.phase != "Running" })
	if missing := complaintOf(wanted, found, "-"+nodeName); missing != "" {
		return "at the API server: " + missing
	}
	return ""
}

func (n *node) exportAll(t *testing.T, dir string) {
	t.Helper()
	for _, p := range pods() {
		write(t, filepath.Join(dir, p.name+".yaml"), n.must(t, "export", "-n", p.namespace, p.name).stdout)
	}
}

// restarts ends containers and a sandbox under the kubelet, which starts them again with their counts and volumes.
func (n *node) restarts(t *testing.T, k *kubelet) {
	t.Helper()
	n.stopSandbox(t, "default/podlevel")
	for _, c := range []struct{ name, file, text string }{
		{"default/several/web", "/data/kept", "text-1"},
		{"default/several/worker", "/part/kept", "text-3"},
		{"default/volumes/app", "/memory/kept", "text-2"},
		{"team/inits/proxy", "/site/index.html", "hello"},
		{"default/onfailure/app", "", ""},
		{"default/hostnet/app", "", ""},
	} {
		old := n.records(t).idOf(t, c.name)
		n.stop(t, old)
		until(t, func() string {
			k.alive(t)
			for id, what := range n.records(t) {
				if what == c.name+" "+running && id != old {
					return ""
				}
			}
			return "the kubelet does not start " + c.name + " again"
		})
		if c.file == "" {
			continue
		}
		parts := strings.Split(c.name, "/")
		r := n.must(t, "exec", "-n", parts[0], parts[1], "-c", parts[2], "--", "/demo", "read", c.file)
		if !strings.Contains(r.stdout, c.text) {
			t.Errorf("%s: %s is lost: %s", c.name, c.file, r.stdout)
		}
	}
	until(t, func() string {
		for _, what := range n.records(t) {
			if what == "default/podlevel-"+nodeName+"/app "+running {
				return ""
			}
		}
		return "the kubelet does not make the sandbox of podlevel again"
	})
}

// takeBack checks that podctl has nothing to change after the kubelet, and adopts its pods.
func (n *node) takeBack(t *testing.T, manifests string, before records) {
	t.Helper()
	until(t, func() string {
		n.run(t, "probe", "-A")
		if r := n.run(t, "plan", "--exit-code", manifests); r.code != 0 {
			return fmt.Sprintf("the plan after the kubelet: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		return ""
	})
	n.must(t, "apply", manifests)
	sameRuns(t, before, n.records(t))
}

// deleteAll checks that no part of a pod is left after its deletion, except the logs that podctl archives.
func (n *node) deleteAll(t *testing.T) {
	t.Helper()
	n.must(t, "delete", "--all", "-A")
	if left := n.left(t); left != "" {
		t.Error(left)
	}
}

// left returns a record of a pod in the runtime or on the disk of the node; empty if there is none.
func (n *node) left(t *testing.T) string {
	t.Helper()
	if left := n.records(t); len(left) > 0 {
		return fmt.Sprintf("records are left: %v", left)
	}
	for _, dir := range []string{filepath.Join(stateDir, "pods"), podLogs} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			if e.Name() != ".deleted" {
				return "left: " + filepath.Join(dir, e.Name())
			}
		}
	}
	return ""
}

func edit(t *testing.T, path, old, text string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	write(t, path, strings.ReplaceAll(string(content), old, text))
}
