package e2e

import (
	"bytes"
	"context"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/runtime/runtimetest"
)

const watched = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: a
    image: 'i:1'
    readinessProbe: {exec: {command: [x]}, periodSeconds: 1}
`

// TestWatchesDoNotGrow: commands that run forever do not use more goroutines and files over time. All of them follow
// containers that restart meanwhile.
func TestWatchesDoNotGrow(t *testing.T) {
	l := newCrashLab(t, crash{Shape: runtimetest.Shape{Before: watched}})
	defer l.close()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, args := range [][]string{
		{"get", "-w", "web"}, {"wait", "--for=completed", "web"}, {"probe", "-w", "web"}, {"logs", "-f", "web"},
	} {
		group.Go(func() {
			env := &commands.Env{
				In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Now: time.Now,
				Getenv: func(string) string { return "" },
			}
			if code := commands.Main(ctx, env, l.args(args)); code != 130 {
				t.Errorf("%v: exit code %d\n%s", args, code, env.Err)
			}
		})
	}
	l.rounds()
	goroutines, files := fewestGoroutines(), openFiles(t)
	for range 3 {
		l.rounds()
	}
	if now := fewestGoroutines(); now > goroutines+10 {
		t.Errorf("%d goroutines, %d after three times as many rounds", goroutines, now)
	}
	// A running call may have a file.
	if now := openFiles(t); len(now) > len(files)+4 {
		t.Errorf("%d open files, %d after three times as many rounds: %v", len(files), len(now), now)
	}
	cancel()
	group.Wait()
}

// fewestGoroutines returns the lowest of several counts, because each running call has goroutines.
func fewestGoroutines() int {
	fewest := goruntime.NumGoroutine()
	for range 100 {
		time.Sleep(5 * time.Millisecond)
		fewest = min(fewest, goruntime.NumGoroutine())
	}
	return fewest
}

// rounds waits until all watches have observed the pod several times, before and after restarts.
func (l *crashLab) rounds() {
	l.t.Helper()
	for range 3 {
		l.must("restart", "web")
		for calls := l.proxy.Count(""); l.proxy.Count("") < calls+25; {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func openFiles(t *testing.T) []string {
	t.Helper()
	files, err := runtimetest.FilesOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return files
}
