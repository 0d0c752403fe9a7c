package lifecycle_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestRunReportsWhyPodFailed checks that an error describes the end of a pod if no regular container has an exit code
// to pass on.
func TestRunReportsWhyPodFailed(t *testing.T) {
	l := newLab(t)
	l.Behave("i", runtimetest.Behaviour{After: soon, ExitCode: 9})
	job := l.Write("job", "  restartPolicy: Never\n  initContainers: [{name: i, image: 'i:1'}]\n  containers: [{name: a, image: 'i:1'}]\n")
	code, _, stderr := l.Call("run", job)
	if code != exit.RunFailed ||
		!strings.Contains(stderr, "podctl: pod default/job has ended as Failed: i exited 9\n") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	l.Behave("b", runtimetest.Behaviour{After: soon, ExitCode: 7})
	job = l.Write("plain", "  restartPolicy: Never\n  containers: [{name: b, image: 'i:1'}]\n")
	if code, _, stderr = l.Call("run", job); code != 7 || strings.Contains(stderr, "podctl: ") {
		t.Errorf("exit code of a container: %d\n%s", code, stderr)
	}
}

// TestRunBesideAKubelet checks that run has the flag that its refusal names.
func TestRunBesideAKubelet(t *testing.T) {
	l := newLab(t)
	l.besideKubelet()
	l.Behave("a", runtimetest.Behaviour{After: soon})
	job := l.Write("job", "  restartPolicy: Never\n  containers: [{name: a, image: 'i:1'}]\n")
	code, _, stderr := l.Call("run", job)
	if code != exit.RunFailed || !strings.Contains(stderr, "--allow-kubelet continues anyway") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	l.Must("run", "--allow-kubelet", job)
}

// besideKubelet starts a process that looks like a kubelet on the lab's runtime.
func (l *lab) besideKubelet() {
	l.T().Helper()
	script := l.Path("kubelet")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 3600\n"), 0o700); err != nil {
		l.T().Fatal(err)
	}
	endpoint := "--container-runtime-endpoint=" + l.Path("cri.sock")
	ctx := context.WithoutCancel(l.T().Context())
	cmd := exec.CommandContext(ctx, script, endpoint) // the script is a file of the test
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		l.T().Fatal(err)
	}
	l.T().Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	for ; l.T().Context().Err() == nil; time.Sleep(soon) {
		// A process gets its new name before its new arguments.
		name, nameErr := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/comm")
		args, argsErr := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cmdline")
		if nameErr == nil && argsErr == nil && string(name) == "kubelet\n" && bytes.Contains(args, []byte(script)) {
			return
		}
	}
	l.T().Fatal("the process does not look like a kubelet")
}

// TestFailedStartEndsTheRun checks that, under Never, a failed start ends the container like any exit code. The pod
// completes after the others have ended.
func TestFailedStartEndsTheRun(t *testing.T) {
	for name, spec := range map[string]string{
		"alone":  "  restartPolicy: Never\n  containers: [{name: bad, image: 'i:1'}]\n",
		"beside": "  restartPolicy: Never\n  containers: [{name: bad, image: 'i:1'}, {name: good, image: 'i:1'}]\n",
		"init":   "  restartPolicy: Never\n  initContainers: [{name: bad, image: 'i:1'}]\n  containers: [{name: good, image: 'i:1'}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			for goal, want := range map[string]int{
				"completed": exit.PodFailed, "ready": exit.NotYet, "started": exit.NotYet,
			} {
				l := newLab(t)
				l.Behave("bad", runtimetest.Behaviour{StartError: "no such file"})
				l.Behave("good", runtimetest.Behaviour{After: 100 * soon})
				code, stdout, stderr := l.Call("apply", "--wait="+goal, l.Write("job", spec))
				if code != want || !strings.Contains(stderr, "RunContainerError") {
					t.Errorf("%s: exit code %d\n%s%s", goal, code, stdout, stderr)
				}
			}
			l := newLab(t)
			l.Behave("bad", runtimetest.Behaviour{StartError: "no such file"})
			l.Behave("good", runtimetest.Behaviour{After: 100 * soon})
			want := 128
			if name == "init" {
				want = exit.RunFailed
			}
			if code, _, stderr := l.Call("run", l.Write("job", spec)); code != want ||
				!strings.Contains(stderr, "RunContainerError: no such file") {
				t.Errorf("run: exit code %d\n%s", code, stderr)
			}
		})
	}
}

// TestRunEndsWithItsReader checks that run ends silently, as by SIGPIPE, if its output is closed, and that --rm deletes
// the pod.
func TestRunEndsWithItsReader(t *testing.T) {
	for _, remove := range []bool{true, false} {
		l := newLab(t)
		job := l.Write("job", "  restartPolicy: Never\n  containers: [{name: a, image: 'i:1'}]\n")
		go l.talk("a")
		var errs bytes.Buffer
		env := &commands.Env{
			In: strings.NewReader(""), Out: unreadPipe{}, Err: &errs, Now: l.Clock.Now,
			Getenv: func(string) string { return "" },
		}
		code := commands.Main(t.Context(), env, []string{
			"--state-dir", l.Path("state"), "--log-root", l.Path("logs"), "--cgroup-root", l.CgroupRoot,
			"-r", "unix://" + l.Path("cri.sock"), "--timeout", "1h", "run", "--rm=" + strconv.FormatBool(remove), job,
		})
		if code != exit.BrokenPipe || errs.Len() > 0 {
			t.Errorf("exit code %d\n%s", code, errs.String())
		}
		if stdout, _ := l.Must("get", "--no-headers"); (stdout == "") != remove {
			t.Errorf("--rm=%v leaves %q", remove, stdout)
		}
	}
}

// talk writes a line into the log of a container as soon as the log exists.
func (l *lab) talk(container string) {
	for l.T().Context().Err() == nil {
		time.Sleep(soon)
		logs, err := filepath.Glob(l.Path("logs/*/" + container + "/0.log"))
		if err != nil || len(logs) == 0 {
			continue
		}
		if err := os.WriteFile(logs[0], []byte("2026-05-04T12:00:00Z stdout F words\n"), 0o600); err != nil {
			l.T().Error(err)
		}
		return
	}
}

type unreadPipe struct{}

func (unreadPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }
