package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fate is the result for a pod with a field that prevents a takeover.
type fate string

const (
	kept     fate = "keeps running"
	refused  fate = "is refused, and killed as unknown"
	replaced fate = "is restarted"
	stuck    fate = "keeps running, and does not start again"
)

const preventedPod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  %s
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    %s
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {key: value}
`

// prevented returns pods for which `export` predicts the result: it names the field and exits with 3.
func prevented() map[string]struct {
	spec, container, output string
	fate                    fate
} {
	return map[string]struct {
		spec, container, output string
		fate                    fate
	}{
		"plain": {"", "", "", kept},
		"refers": {
			"", "env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: key}}}]",
			"may not refer to a ConfigMap", refused,
		},
		"gated": {"schedulingGates: [{name: example.com/gate}]", "", "spec.schedulingGates[0]", refused},
		"restarted": {
			"", "resources: {limits: {memory: 64Mi}}, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]",
			"resizePolicy[0]", replaced,
		},
		"projected": {
			"volumes: [{name: p, projected: {sources: [{downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}]",
			"volumeMounts: [{name: p, mountPath: /p}]", "spec.volumes[0].projected", stuck,
		},
	}
}

// TestPrevented checks export's predictions for pods that a kubelet cannot take over.
func TestPrevented(t *testing.T) {
	n := newNode(t)
	dir, ids := t.TempDir(), map[string]string{}
	for name, p := range prevented() {
		container := strings.ReplaceAll(p.container, "}, resizePolicy", "}\n    resizePolicy")
		manifest := filepath.Join(t.TempDir(), name+".yaml")
		write(t, manifest, fmt.Sprintf(preventedPod, name, p.spec, container))
		n.must(t, "apply", "--wait", "--timeout", "2m", manifest)
		ids[name] = n.records(t).idOf(t, "default/"+name+"/app")
		r := n.run(t, "export", name)
		if want := map[bool]int{true: 0, false: 3}[p.fate == kept]; r.code != want || !strings.Contains(r.stderr, p.output) {
			t.Errorf("export %s: exit code %d, want %d and %q\n%s", name, r.code, want, p.output, r.stderr)
		}
		write(t, filepath.Join(dir, "manifests", name+".yaml"), r.stdout)
	}
	k := n.startKubelet(t, dir, nil)
	until(t, func() string {
		k.alive(t)
		live := n.records(t).live()
		for name, p := range prevented() {
			if _, runs := live[ids[name]]; runs != (p.fate == kept || p.fate == stuck) {
				return fmt.Sprintf("pod %s %s: %v", name, p.fate, live)
			}
		}
		return ""
	})
	n.stop(t, ids["plain"])
	n.stop(t, ids["projected"])
	again := func(name string) bool {
		for id, what := range n.records(t) {
			if what == "default/"+name+"/app "+running && id != ids[name] {
				return true
			}
		}
		return false
	}
	until(t, func() string {
		if !again("plain") || !again("restarted") {
			return "the kubelet does not start plain or restarted again"
		}
		return ""
	})
	time.Sleep(calm)
	for name, p := range prevented() {
		if (p.fate == refused || p.fate == stuck) && again(name) {
			t.Errorf("pod %s runs again: it %s", name, p.fate)
		}
	}
	k.end(t)
	// The kubelet removes everything of unknown pods except directories of logs, and podctl's records with it.
	n.must(t, "prune")
	n.deleteAll(t)
}

// TestPanics checks that a kubelet without an API server panics at a runtimeClassName, which is why export prints no
// such pod.
func TestPanics(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	manifest, _, _ := strings.Cut(fmt.Sprintf(preventedPod, "class", "runtimeClassName: runc", ""), "---")
	write(t, filepath.Join(dir, "manifests", "class.yaml"), manifest)
	k := n.startKubelet(t, dir, nil)
	select {
	case <-k.ended:
		if text, err := os.ReadFile(k.log); err != nil || !strings.Contains(string(text), "panic:") {
			t.Errorf("the kubelet ended, and not by a panic: %v", err)
		}
	case <-time.After(patience):
		t.Error("the kubelet goes on with a runtimeClassName: export may print such pods")
	}
}
