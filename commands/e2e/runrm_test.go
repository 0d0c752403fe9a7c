package e2e

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

const job = `apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: a, image: 'i:1'}]
`

// call runs a command to its end, and returns its exit code and its output.
func (l *crashLab) call(args ...string) (int, string) {
	var printed bytes.Buffer
	code := l.callTo(l.t.Context(), &printed, args...)
	return code, printed.String()
}

// callTo is like call, but writes the output to a writer.
func (l *crashLab) callTo(ctx context.Context, out io.Writer, args ...string) int {
	env := &commands.Env{
		In: strings.NewReader(""), Out: out, Err: out, Now: time.Now, Getenv: func(string) string { return "" },
	}
	return commands.Main(ctx, env, l.args(args))
}

// runs checks that a container of the pod job runs, and waits up to a minute for it.
func (l *crashLab) runs(container string) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		for _, line := range l.records() {
			if strings.HasPrefix(line, "container "+container+" of job CONTAINER_RUNNING") {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.t.Errorf("container %s does not run:\n%s", container, strings.Join(l.records(), "\n"))
}

// TestRunRemovesItsOwnPod: with --rm, an ended job leaves nothing behind.
func TestRunRemovesItsOwnPod(t *testing.T) {
	l := newCrashLab(t, crash{Shape: runtimetest.Shape{
		After: job, Behave: map[string][]runtimetest.Behaviour{"a": {{After: time.Second, ExitCode: 7}}},
	}})
	defer l.close()
	if code, printed := l.call("run", "--rm", "MANIFEST"); code != 7 {
		t.Errorf("exit code %d\n%s", code, printed)
	}
	if records := strings.Join(l.records(), "\n"); strings.Contains(records, "job") {
		t.Errorf("what is left:\n%s", records)
	}
}

// TestRunKeepsPodChangedByOthers: --rm does not remove a pod that another process has changed meanwhile, and reports
// that it stays.
func TestRunKeepsPodChangedByOthers(t *testing.T) {
	l := newCrashLab(t, crash{Shape: runtimetest.Shape{After: job}})
	defer l.close()
	l.write("other.yaml", strings.Replace(job, "name: a", "name: b", 1))
	type outcome struct {
		code    int
		printed string
	}
	ended := make(chan outcome)
	go func() {
		code, printed := l.call("run", "--rm", "MANIFEST")
		ended <- outcome{code, printed}
	}()
	l.runs("a")
	l.must("apply", l.path("other.yaml"))
	if got := <-ended; got.code != 125 ||
		!strings.Contains(got.printed, "was changed by another podctl meanwhile, and that change is kept") {
		t.Errorf("exit code %d\n%s", got.code, got.printed)
	}
	l.runs("b")
}

// TestRunWithoutLockRemovesNothing: a run that did not get the lock removes nothing, even if the pod is the same.
func TestRunWithoutLockRemovesNothing(t *testing.T) {
	l := newCrashLab(t, crash{Shape: runtimetest.Shape{After: job}})
	defer l.close()
	l.must("apply", "MANIFEST")
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(job)}, "-")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := state.Layout{Root: l.stateDir, LogRoot: l.logRoot}.Pod(m.Pods[0].Pod.UID).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var printed lockedBuffer
	ended := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() { ended <- l.callTo(ctx, &printed, "--lock-timeout", "3s", "run", "--rm", "MANIFEST") }()
	// The call prints a note after it has waited for a second, and gives up two seconds later. A second attempt, to
	// remove the pod, would get the lock.
	for end := time.Now().Add(time.Minute); !strings.Contains(printed.String(), "waiting for") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	code := -1
	select {
	case code = <-ended:
	case <-time.After(3500 * time.Millisecond):
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	if code < 0 {
		code = <-ended
	}
	if code != 125 || !strings.Contains(printed.String(), "--lock-timeout") {
		t.Errorf("exit code %d\n%s", code, printed.String())
	}
	l.runs("a")
}
