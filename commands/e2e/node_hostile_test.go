package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const (
	goodUID     = "00000000-0000-4000-8000-00000000900d"
	staticUID   = "00000000-0000-4000-8000-0000000057a7"
	secretValue = "hostile-secret-value"
)

// hostileLab is a node of an API server that sends what no API server may send.
type hostileLab struct {
	*nodeLab

	rows map[string]hostilePod
	// mu guards odd, the paths of requests that could reach other objects.
	mu  sync.Mutex
	odd []string
}

// TestHostileObjects checks that no object of an API server affects the node, other pods and files outside of its pod,
// that no Secret is shown, and that each pod can be deleted. A node that is started with the objects is the same.
func TestHostileObjects(t *testing.T) {
	l := &hostileLab{nodeLab: newNodeLab(t), rows: map[string]hostilePod{}}
	defer l.close()
	for _, table := range []map[string]hostilePod{hostileNames(), hostileKeys(), hostilePaths(), hostileNumbers()} {
		maps.Copy(l.rows, table)
	}
	l.answerWith(l.answer)
	const login = "env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: password}}}]"
	good := hostilePod{yaml: inContainer(login, "")}.pod(t, "good")
	good.UID, good.Spec.Containers[0].Name = goodUID, "healthy"
	l.healthy = ""
	l.cluster.server.Store(loginPath, loginSecret(secretValue))
	l.cluster.server.Put(good)
	l.write("source/static.yaml", strings.Replace(strings.ReplaceAll(secretPods, "NAME", "static"),
		"name: static}", "name: static, uid: "+staticUID+"}", 1))
	l.start()
	l.untilRunning("good")
	l.until("the static pod runs", func() bool { return l.runs("static") })
	l.send()
	l.untilAll()
	l.check()
	l.stop(syscall.SIGTERM)
	l.start()
	l.untilAll()
	l.check()
	l.endAll()
	l.stop(syscall.SIGTERM)
}

// answer issues tokens, and notes requests whose path names another object than it seems to.
func (l *hostileLab) answer(r *http.Request) http.HandlerFunc {
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path || strings.Contains(clean, "/other/") {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.odd = append(l.odd, r.Method+" "+r.URL.Path)
	}
	return issues("issued-token-value")(r)
}

// send stores all objects in the API.
func (l *hostileLab) send() {
	l.t.Helper()
	for path, o := range hostileServices() {
		l.cluster.server.Store(path, o)
	}
	for name, row := range l.rows {
		for path, o := range row.objects {
			l.cluster.server.Store(path, o)
		}
		l.cluster.server.Store(podPath(name), row.pod(l.t, name))
	}
}

func podPath(name string) string { return "/api/v1/namespaces/default/pods/" + name }

// untilAll waits until each pod has the expected status, and a pod that is created then runs.
func (l *hostileLab) untilAll() {
	l.t.Helper()
	var wrong string
	defer func() {
		if wrong != "" {
			l.t.Log(wrong)
		}
	}()
	l.until("each pod has its status", func() bool {
		wrong = l.wrong()
		return wrong == ""
	})
	later := hostilePod{}.pod(l.t, "later")
	l.cluster.server.Put(later)
	l.untilRunning("later", "good")
	l.cluster.server.End("default", "later", 1)
	l.until("the later pod is gone", func() bool { return l.cluster.server.Pod("default", "later") == nil })
}

// wrong describes the pods with another status than expected.
func (l *hostileLab) wrong() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.rows)) {
		phase, want, _ := strings.Cut(l.rows[name].want, ": ")
		if phase == "Log" {
			if !strings.Contains(l.log.String(), want) {
				all = append(all, name+": not in the log: "+want)
			}
			continue
		}
		pod := l.cluster.server.Pod("default", name)
		if pod == nil {
			pod = &v1.Pod{Status: v1.PodStatus{Phase: "Gone"}}
		}
		if text := l.textOf(pod); string(pod.Status.Phase) != phase || !strings.Contains(text, want) {
			all = append(all, fmt.Sprintf("%s: %s %.1000s, want %s: %s", name, pod.Status.Phase, text, phase, want))
		}
	}
	return strings.Join(all, "\n")
}

// textOf returns the reasons and messages of a pod, its containers and its events.
func (l *hostileLab) textOf(pod *v1.Pod) string {
	all := []string{pod.Status.Reason, pod.Status.Message}
	for i := range pod.Status.ContainerStatuses {
		if waiting := pod.Status.ContainerStatuses[i].State.Waiting; waiting != nil {
			all = append(all, waiting.Reason, waiting.Message)
		}
	}
	for _, o := range l.cluster.server.Objects("events") {
		if e, is := o.(*v1.Event); is && e.InvolvedObject.Name == pod.Name {
			all = append(all, e.Reason, e.Message)
		}
	}
	return strings.Join(all, "; ")
}

// check checks what no object may change.
func (l *hostileLab) check() {
	l.t.Helper()
	l.records() // It compares the container of the good pod.
	for _, o := range l.cluster.server.Objects("nodes") {
		for _, c := range o.(*v1.Node).Status.Conditions { // of this resource
			if c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
				l.t.Errorf("the node is not ready: %s", c.Message)
			}
		}
	}
	l.mu.Lock()
	if len(l.odd) > 0 {
		l.t.Errorf("requests: %q", l.odd)
	}
	l.mu.Unlock()
	for _, text := range []string{l.printed(), l.reported(), l.log.String()} {
		if containsAny(text, slices.Concat(encodings(secretValue), encodings("issued-token-value"))) {
			l.t.Errorf("a value is shown: %.4000s", text)
		}
	}
	for _, found := range l.onDisk(secretValue) {
		rest := strings.TrimPrefix(found, l.stateDir)
		if !strings.HasPrefix(rest, "/pods/") && !strings.HasPrefix(rest, "/cluster/objects/default/") {
			l.t.Errorf("a value is in %s", found)
		}
	}
	l.checkEscapes()
}

// checkEscapes checks that no path led out of its directory.
func (l *hostileLab) checkEscapes() {
	l.t.Helper()
	if err := filepath.WalkDir(l.dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // It has just been removed.
			return nil
		}
		if strings.Contains(path, escaped) {
			l.t.Errorf("there is %s", path)
		}
		return err
	}); err != nil {
		l.t.Error(err)
	}
	working, err := os.Getwd()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, dir := range []string{l.dir, working} {
		for ; ; dir = filepath.Dir(dir) {
			if _, err = os.Lstat(filepath.Join(dir, escaped)); err == nil {
				l.t.Errorf("there is %s in %s", escaped, dir)
			}
			if dir == "/" {
				break
			}
		}
	}
}

// endAll deletes all pods, and checks that only the good ones have files and records.
func (l *hostileLab) endAll() {
	l.t.Helper()
	for name := range l.rows {
		l.cluster.server.End("default", name, 1)
	}
	l.until("only the good pods are left", func() bool {
		entries, err := os.ReadDir(filepath.Join(l.stateDir, "pods"))
		return err == nil && len(entries) == 2 && len(l.records()) == 4
	})
	var left []string
	for name, row := range l.rows {
		pod := l.cluster.server.Pod("default", name)
		// The node cannot end a pod whose uid is that of a static pod.
		if pod != nil && !strings.HasPrefix(row.want, "Log: ") && pod.UID != staticUID {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		l.t.Errorf("the API still has %q", left)
	}
}
