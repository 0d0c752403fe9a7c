package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// nodeLab is an agent in a separate process that is a node of an API server in memory, with a runtime in memory.
type nodeLab struct {
	*crashLab

	// away makes the API server close each connection without an answer.
	away atomic.Bool
	// raw has the answers that answerWith sets; nil if there are none.
	raw atomic.Pointer[func(r *http.Request) http.HandlerFunc]

	cmd    *exec.Cmd
	exited chan error
	log    lockedBuffer
}

// lockedBuffer can be read while a process writes to it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newNodeLab(t *testing.T) *nodeLab {
	t.Helper()
	l := &nodeLab{crashLab: newCrashLab(t, crash{agent: true})}
	l.must("delete", "-f", l.path("beside.yaml"))
	l.crash.api = true
	l.prepareCluster(func(r *http.Request) http.HandlerFunc {
		if l.away.Load() {
			return apitest.Disconnect
		}
		if raw := l.raw.Load(); raw != nil {
			return (*raw)(r)
		}
		return nil
	})
	return l
}

// answerWith sets the answers of the API server in place of its own. The function returns nil for its own answer. The
// agent that newNodeLab has run may still have a request.
func (l *nodeLab) answerWith(raw func(r *http.Request) http.HandlerFunc) { l.raw.Store(&raw) }

// start starts an agent with more flags, and waits until it answers.
func (l *nodeLab) start(flags ...string) {
	l.t.Helper()
	l.launch(flags...)
	l.until("the agent answers", func() bool {
		code, _ := l.run([]string{"agent", "status"})
		return code == 0
	})
}

// launch starts an agent with more flags.
func (l *nodeLab) launch(flags ...string) {
	l.t.Helper()
	args := append(slices.Clone(nodeArgs()), flags...)
	l.cmd = exec.CommandContext(l.t.Context(), l.podctl, l.args(append(args, "SOURCE"))...)
	l.cmd.Env = append(os.Environ(), l.env)
	l.cmd.Stdout, l.cmd.Stderr = &l.log, &l.log
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan error) { exited <- cmd.Wait() }(l.cmd, l.exited)
}

// close kills the agent and removes the lab.
func (l *nodeLab) close() {
	l.t.Helper()
	if l.cmd != nil && l.cmd.Process.Kill() == nil {
		<-l.exited //nolint:errcheck // it was killed
	}
	l.crashLab.close()
}

// stop ends the agent with a signal.
func (l *nodeLab) stop(signal syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(signal); err != nil {
		l.t.Fatal(err)
	}
	err := <-l.exited
	if l.cmd = nil; err != nil && signal == syscall.SIGTERM {
		l.t.Errorf("the agent: %v", err)
	}
}

// reboot ends all containers and removes what is in memory, like a restart of the machine without its agent.
func (l *nodeLab) reboot() {
	l.t.Helper()
	l.server.Reboot()
	for path := range strings.FieldsSeq(l.mounts()) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			l.t.Fatal(err)
		}
	}
}

// nodeLimit ends a test that hangs. A busy machine needs a minute for the pods of the largest test.
const nodeLimit = 5 * time.Minute

// until waits for a condition. The agent must live.
func (l *nodeLab) until(what string, is func() bool) {
	l.t.Helper()
	for end := time.Now().Add(patient(nodeLimit)); !is(); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-l.exited:
			l.t.Fatalf("%s: the agent has ended: %v\n%s", what, err, l.log.String())
		default:
		}
		if time.Now().After(end) {
			_, printed := l.run([]string{"get", "-A"})
			_, status := l.run([]string{"agent", "status"})
			l.t.Fatalf("timeout: %s\n%s\n%s\n%s", what, printed, status, l.log.String())
		}
	}
}

// phase returns the phase of a pod in the API.
func (l *nodeLab) phase(name string) v1.PodPhase {
	if pod := l.cluster.server.Pod("default", name); pod != nil {
		return pod.Status.Phase
	}
	return ""
}

// untilRunning waits until a pod is ready in the API.
func (l *nodeLab) untilRunning(names ...string) {
	l.t.Helper()
	for _, name := range names {
		l.until(name+" runs", func() bool { return l.phase(name) == v1.PodRunning })
	}
}

// onDisk returns the files with one of the texts, in any encoding that podctl writes. It leaves out file systems in
// memory.
func (l *nodeLab) onDisk(texts ...string) (found []string) {
	l.t.Helper()
	var skipped []string
	for path := range strings.FieldsSeq(l.mounts()) {
		skipped = append(skipped, path)
	}
	for _, root := range []string{l.stateDir, l.logRoot, l.source(), "/run"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // It has just been removed.
				return nil
			case err != nil:
				return err
			case slices.Contains(skipped, path):
				return fs.SkipDir
			case !entry.Type().IsRegular():
				return nil
			}
			content, err := os.ReadFile(path)
			for _, text := range texts {
				if err == nil && containsAny(string(content), encodings(text)) {
					found = append(found, path+": "+text)
				}
			}
			return nil
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	return found
}

// printed returns the output of commands that show pods.
func (l *nodeLab) printed() string {
	var all strings.Builder
	for _, args := range [][]string{
		{"get", "-A", "-o", "json"}, {"describe", "-A"}, {"events", "-A"}, {"plan", "-A"}, {"agent", "status"},
	} {
		_, text := l.run(args)
		fmt.Fprintf(&all, "%v: %s\n", args, text)
	}
	return all.String()
}

// reported returns all that the API server got: pods with their statuses, and events.
func (l *nodeLab) reported() string {
	text, err := json.Marshal(l.cluster.server.Objects("pods", "events", "nodes"))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}
