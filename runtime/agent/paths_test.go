package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

// safeBuffer is a buffer that is safe for concurrent use.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

// lines returns the lines that contain a word.
func (b *safeBuffer) lines(word string) (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.buffer.String()) {
		if strings.Contains(line, word) {
			lines = append(lines, line)
		}
	}
	return lines
}

// withHostPath returns a pod of the source that mounts a directory of the node.
func (l *lab) withHostPath(path string) *podspec.Desired {
	l.t.Helper()
	text := "{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {terminationGracePeriodSeconds: 1, " +
		"volumes: [{name: v, hostPath: {path: " +
		path +
		", type: Directory}}], containers: [{name: a, image: 'i:1', volumeMounts: [{name: v, mountPath: /v}]}]}}"
	m, err := load.Load(l.t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		l.t.Fatal(err, m.Err())
	}
	m.Pods[0].Owner = "channel"
	return m.Pods[0]
}

// TestCreatedHostPathWakesThePod checks that the pod starts as soon as the directory exists, no matter how many of its
// parents were missing. The hold and its end are logged once.
func TestCreatedHostPathWakesThePod(t *testing.T) {
	l, log := newLab(t), &safeBuffer{}
	l.log = slog.NewTextHandler(log, nil)
	c := newChannel()
	a, stop := l.run(c)
	defer stop()
	root := t.TempDir()
	path := filepath.Join(root, "data", "web", "files")
	c.updates <- []*podspec.Desired{l.withHostPath(path)}
	l.until("the pod is held", func() bool { return len(log.lines(`msg="pod held"`)) == 1 })
	watched := func() []string {
		return inLoop(l, a, func() (dirs []string) {
			for _, watcher := range a.paths.watchers {
				dirs = append(dirs, watcher.WatchList()...)
			}
			return dirs
		})
	}
	l.until("the nearest parent is watched", func() bool { dirs := watched(); return len(dirs) == 1 && dirs[0] == root })
	uid := types.UID("")
	for one := range inLoop(l, a, func() map[types.UID]lastPass { return a.last }) {
		uid = one
	}
	first := inLoop(l, a, func() lastPass { return a.last[uid] })
	if err := os.WriteFile(filepath.Join(root, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "data"), 0o755); err != nil { // a test
		t.Fatal(err)
	}
	l.until("the directory below is watched", func() bool {
		dirs := watched()
		return len(dirs) == 1 && dirs[0] == filepath.Join(root, "data")
	})
	l.until("the pod had a pass", func() bool { return inLoop(l, a, func() lastPass { return a.last[uid] }).at.After(first.at) })
	if err := os.MkdirAll(path, 0o755); err != nil { // a test
		t.Fatal(err)
	}
	l.until("the pod runs", func() bool { return l.running()["one"] != "" })
	l.until("nothing is watched", func() bool { return len(watched()) == 0 })
	l.until("the end of the hold is written", func() bool { return len(log.lines("no longer held")) == 1 })
	if held := log.lines(`msg="pod held"`); len(held) != 1 {
		t.Errorf("log lines %q", held)
	}
}

// TestReadyNetworkWakesThePod checks that a pod that waits for the network of its runtime starts soon after the network
// is ready. The hold is recorded as one event and one log line, however often the runtime is queried.
func TestReadyNetworkWakesThePod(t *testing.T) {
	l, log := newLab(t), &safeBuffer{}
	l.log = slog.NewTextHandler(log, nil)
	l.server.SetNetwork("no CNI configuration")
	c := newChannel()
	a, stop := l.run(c)
	defer stop()
	one := l.manifest("one", "i:1")
	c.updates <- []*podspec.Desired{one}
	uid := one.Pod.UID
	l.until("the pod is held", func() bool { return len(log.lines(`msg="pod held"`)) == 1 })
	first := inLoop(l, a, func() lastPass { return a.last[uid] })
	l.until("the pod had another pass", func() bool { return inLoop(l, a, func() lastPass { return a.last[uid] }).at.After(first.at) })
	l.server.SetNetwork("")
	l.until("the pod runs", func() bool { return l.running()["one"] != "" })
	h, err := l.layout.Pod(uid).History().Read()
	notified := 0
	for i := range h.Events {
		if h.Events[i].Reason == "NetworkNotReady" {
			notified += max(h.Events[i].Count, 1)
		}
	}
	if held := log.lines(`msg="pod held"`); len(held) != 1 || notified != 1 || err != nil {
		t.Errorf("%d events, log lines %q: %v", notified, held, err)
	}
}
