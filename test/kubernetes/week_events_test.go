package kubernetes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seconds returns a random time of at most n seconds.
func (w *week) seconds(n int) time.Duration {
	return time.Duration(1+w.rand.IntN(n*1000)) * time.Millisecond
}

// disturbances are what the machine and the API server do.
func (w *week) disturbances() []weekEvent {
	return []weekEvent{
		{name: "calm", often: 3, run: func(*testing.T) func() { return nil }},
		{name: "slow API server", often: 2, run: func(*testing.T) func() { return w.lineIs(quality{delay: w.seconds(2)}) }},
		{name: "silent API server", often: 2, run: func(*testing.T) func() { return w.lineIs(quality{silent: true}) }},
		{name: "unreachable API server", often: 2, run: func(*testing.T) func() { return w.lineIs(quality{closed: true}) }},
		{name: "connections cut", often: 2, run: func(*testing.T) func() { w.line.cut(); return w.line.cut }},
		{name: "API server restarted", often: 2, run: func(t *testing.T) func() {
			w.server.end(t)
			w.startAPIServer(t)
			return nil
		}},
		{name: "API server stopped", often: 3, withoutServer: true, run: func(t *testing.T) func() {
			w.server.end(t)
			return func() { time.Sleep(w.seconds(15)); w.startAPIServer(t) }
		}},
		{name: "API server killed with etcd", often: 1, withoutServer: true, run: func(t *testing.T) func() {
			w.server.kill()
			w.etcd.end(t)
			return func() { time.Sleep(w.seconds(15)); w.startServers(t) }
		}},
		{name: "etcd compacted", often: 1, run: func(t *testing.T) func() { w.compact(t); w.line.cut(); return nil }},
		{name: "agent restarted", often: 2, run: func(t *testing.T) func() {
			w.agent.end(t)
			time.Sleep(w.seconds(5))
			w.startAgent(t)
			return nil
		}},
		{name: "agent killed", often: 2, run: func(t *testing.T) func() {
			w.agent.kill()
			w.startAgent(t)
			return nil
		}},
		{name: "agent away", often: 1, run: func(t *testing.T) func() {
			w.agent.kill()
			return func() { time.Sleep(w.seconds(10)); w.startAgent(t) }
		}},
		{name: "agent upgraded", often: 1, run: func(t *testing.T) func() { w.upgrade(t); return nil }},
		{name: "agent killed without API server", often: 1, withoutServer: true, run: func(t *testing.T) func() {
			w.server.end(t)
			w.agent.kill()
			w.startAgent(t)
			return func() { time.Sleep(w.seconds(10)); w.startAPIServer(t) }
		}},
		{name: "containerd restarted", often: 1, run: func(t *testing.T) func() {
			w.containerd.end(t)
			w.returnContainerd(t)
			return nil
		}},
		{name: "containerd killed", often: 1, run: func(t *testing.T) func() {
			w.containerd.kill()
			w.returnContainerd(t)
			return nil
		}},
	}
}

// lineIs changes the line, and returns what makes it good again after some time. The controllers must not take the node
// for dead, because they change the state of its pods then.
func (w *week) lineIs(q quality) func() {
	w.line.set(q)
	return func() { time.Sleep(w.seconds(5)); w.line.set(quality{}) }
}

func (w *week) returnContainerd(t *testing.T) {
	t.Helper()
	w.containerd = w.node.startContainerd(w.t, w.logs)
	until(t, func() string {
		r := w.node.run(t, "get", "-A", "--runtime-endpoint", "unix://"+containerdSocket)
		if r.code != 0 {
			return r.stderr
		}
		return ""
	})
}

// upgrade starts the agent from another program file.
func (w *week) upgrade(t *testing.T) {
	t.Helper()
	dir := w.path(fmt.Sprintf("podctl-%d", time.Now().UnixNano()))
	before := filepath.Dir(w.node.podctl)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"podctl", "podctl-node"} {
		text, err := os.ReadFile(filepath.Join(before, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o755) //nolint:gosec // it is a program
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.node.podctl = filepath.Join(dir, "podctl")
	w.agent.end(t)
	w.startAgent(t)
	if strings.HasPrefix(before, w.dir) {
		_ = os.RemoveAll(before)
	}
}

// compact removes all old revisions from etcd.
func (w *week) compact(t *testing.T) {
	t.Helper()
	var found struct{ Header struct{ Revision string } }
	w.etcdCall(t, "range", object{"key": base64.StdEncoding.EncodeToString([]byte("/"))}, &found)
	w.etcdCall(t, "compaction", object{"revision": found.Header.Revision, "physical": true}, nil)
}

func (w *week) etcdCall(t *testing.T, call string, body object, answer any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:2379/v3/kv/"+call,
		bytes.NewReader([]byte(w.json(t, body))))
	var text []byte
	if err == nil {
		text, err = send(request, "")
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		t.Errorf("etcd: %v", err)
	}
}

// userActions need the API server.
func (w *week) userActions() []weekEvent {
	kinds := weekKinds()
	create := func(t *testing.T) func() {
		if len(w.pods) < weekPods {
			w.createPod(t, kinds[w.rand.IntN(len(kinds))])
		}
		return nil
	}
	remove := func(grace int) func(t *testing.T) func() {
		return func(t *testing.T) func() {
			if name := w.anyPod(); name != "" {
				delete(w.pods, name)
				w.remove(t, name, grace)
			}
			return nil
		}
	}
	of := func(set string, grace int) func(t *testing.T) func() {
		return func(t *testing.T) func() { w.remove(t, set, grace); return nil }
	}
	return []weekEvent{
		{name: "create", often: 6, run: create},
		{name: "delete", often: 2, run: remove(-1)},
		{name: "delete now", often: 1, run: remove(1)},
		{name: "delete by force", often: 1, run: remove(0)},
		{name: "evict", often: 1, run: w.evict},
		{name: "edit", often: 2, run: w.editPod},
		{name: "label", often: 1, run: func(t *testing.T) func() {
			if name := w.anyPod(); name != "" {
				label := object{"seen": strconv.Itoa(w.rand.IntN(1000))}
				w.request(t, http.MethodPatch, podsPath+"/"+name, mergeType, object{"metadata": object{"labels": label}})
			}
			return nil
		}},
		{name: "set value", often: 2, run: func(t *testing.T) func() { w.setValue(t); return nil }},
		{name: "scale", often: 2, run: func(t *testing.T) func() {
			replicas := object{"replicas": w.rand.IntN(4)}
			w.request(t, http.MethodPatch, webPath+"/scale", mergeType, object{"spec": replicas})
			return nil
		}},
		{name: "roll out", often: 1, run: func(t *testing.T) func() {
			notes := object{"annotations": object{"restarted": time.Now().String()}}
			w.request(t, http.MethodPatch, webPath, mergeType, object{"spec": object{"template": object{"metadata": notes}}})
			return nil
		}},
		{name: "delete of a set", often: 1, run: of("db-0", -1)},
		{name: "delete of a set by force", often: 1, run: of("db-1", 0)},
		{name: "delete mirror", often: 1, run: func(t *testing.T) func() {
			if name := w.any(w.local, ""); name != "" {
				w.remove(t, name+"-"+nodeName, -1)
			}
			return nil
		}},
	}
}

// any returns one of the pods whose name begins with a prefix; empty if there is none.
func (w *week) any(pods map[string]*weekPod, prefix string) string {
	names := slices.Sorted(maps.Keys(pods))
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	if len(names) == 0 {
		return ""
	}
	return names[w.rand.IntN(len(names))]
}

// anyPod returns a pod that the test has created.
func (w *week) anyPod() string { return w.any(w.pods, "") }

func (w *week) evict(t *testing.T) func() {
	t.Helper()
	if name := w.anyPod(); name != "" {
		delete(w.pods, name)
		w.request(t, http.MethodPost, podsPath+"/"+name+"/eviction", jsonType, object{
			"apiVersion": "policy/v1", "kind": "Eviction", "metadata": object{"name": name, "namespace": "week"},
		})
	}
	return nil
}

func (w *week) editPod(t *testing.T) func() {
	t.Helper()
	if name := w.anyPod(); name != "" {
		p, image := w.pods[name], webImage
		if p.image == webImage {
			image = newWebImage
		}
		p.setImage(image)
		app := []object{{"name": "app", "image": p.image}}
		w.request(t, http.MethodPatch, podsPath+"/"+name, strategic, object{"spec": object{"containers": app}})
	}
	return nil
}

// localActions need no API server.
func (w *week) localActions() []weekEvent {
	return []weekEvent{
		{name: "kill", often: 3, run: func(t *testing.T) func() {
			if name := w.anyPod(); name != "" && w.pods[name].restarts < 3 && w.kill(t, "week", name) {
				w.pods[name].restarts++
				w.note("killed: %s", name)
			}
			return nil
		}},
		{name: "write file", often: 2, run: func(t *testing.T) func() {
			w.writeFile(t, fmt.Sprintf("file-%c", 'a'+w.rand.IntN(3)))
			return nil
		}},
		{name: "remove file", often: 1, run: func(t *testing.T) func() {
			name := fmt.Sprintf("file-%c", 'a'+w.rand.IntN(3))
			w.forget(name)
			w.note("removed: %s", name)
			_ = os.Remove(filepath.Join(w.path("manifests"), name+".yaml"))
			return nil
		}},
		{name: "apply", often: 2, run: func(t *testing.T) func() {
			w.applyPod(t, fmt.Sprintf("hand-%c", 'a'+w.rand.IntN(2)))
			return nil
		}},
		{name: "delete by hand", often: 1, run: func(t *testing.T) func() {
			if name := w.any(w.local, "hand-"); name != "" {
				w.forget(name)
				w.podctl(t, "delete", "-n", "week", name)
			}
			return nil
		}},
	}
}

// writeFile writes a manifest into the agent's directory, whose pod differs from the one before in its annotations or
// its image.
func (w *week) writeFile(t *testing.T, name string) {
	t.Helper()
	w.note("wrote: %s", name)
	write(t, filepath.Join(w.path("manifests"), name+".yaml"), w.localPod(t, name))
}

// applyPod applies a pod by hand.
func (w *week) applyPod(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(w.dir, name+".yaml")
	write(t, path, w.localPod(t, name))
	w.podctl(t, "apply", path)
}

// localPod returns a manifest of a pod that does not come from the API server.
func (w *week) localPod(t *testing.T, name string) string {
	t.Helper()
	k, image := &weekKind{name: "local", script: stay, ready: true, phase: "Running"}, webImage
	if w.rand.IntN(2) == 0 {
		image = newWebImage
	}
	if before := w.local[name]; before == nil {
		w.local[name] = &weekPod{weekKind: k, image: image, applied: time.Now(), earlier: w.removed[name]}
	} else {
		before.setImage(image)
	}
	return w.json(t, k.document("week", name, image))
}

// forget forgets a pod that does not come from the API server and is removed.
func (w *week) forget(name string) {
	if before := w.local[name]; before != nil {
		w.removed[name] = before.earlier + before.restarts + 1
		delete(w.local, name)
	}
}

// takeBackup keeps the state of etcd.
func (w *week) takeBackup(t *testing.T) {
	t.Helper()
	w.note("backup")
	w.backup = w.path("backup")
	w.stopServers(t)
	if err := os.CopyFS(w.backup, os.DirFS(w.etcdDir())); err != nil {
		t.Fatal(err)
	}
	w.startServers(t)
}
