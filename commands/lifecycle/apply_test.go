package lifecycle_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestApplyPrintsNotes checks that apply prints the remarks of a plan that belong to no step, once and before the
// first step.
func TestApplyPrintsNotes(t *testing.T) {
	l := newLab(t)
	l.Behave("job", runtimetest.Behaviour{After: soon})
	job := l.Write("job", "  restartPolicy: Never\n  containers: [{name: job, image: 'i:1'}]\n")
	l.Must("apply", "--wait=completed", job)
	l.Write("job", "  restartPolicy: Never\n  containers: [{name: job, image: 'i:2'}]\n")
	edited := "  ! note: The pod has finished. Delete it first to run the change.\n" +
		"  ! note: takes effect only in a new pod: spec.containers[job].image\n"
	if stdout, stderr := l.Must("apply", job); stderr != edited ||
		stdout != "pod default/job applied: 1 field recorded, 1 unchanged\n" {
		t.Errorf("an edited pod that has finished:\n%s%s", stdout, stderr)
	}
	if _, stderr := l.Must("run", job); !strings.Contains(stderr, "note: The pod has finished. Delete it first") {
		t.Errorf("run of an edited pod that has finished:\n%s", stderr)
	}

	big := l.Write("big", "  containers: [{name: a, image: 'i:1', resources: {requests: {cpu: 100k}}}]\n")
	_, stderr := l.Must("apply", "--wait", big)
	first, rest, _ := strings.Cut(stderr, "\n")
	if !strings.HasPrefix(first, "  ! note: the pod requests 100k of cpu") || strings.Contains(rest, "100k") {
		t.Errorf("a pod that requests more than the node has:\n%s", stderr)
	}
	l.Exit("a", 137)
	drift := "was stopped outside podctl: exit code 137"
	if _, stderr := l.Must("apply", job, big); !strings.Contains(stderr, "  ! default/big  drift: container a (") ||
		!strings.Contains(stderr, drift) {
		t.Errorf("a killed container in one of two pods:\n%s", stderr)
	}
	stdout, _ := l.Must("apply", "-o", "json", job)
	if !strings.Contains(stdout, `"type":"Warning","detail":"note: The pod has finished`) {
		t.Errorf("as events: %s", stdout)
	}
}

// TestMissingPullSecretsAreReported checks that apply reports missing pull secrets. They hold up no container, so they
// are in no plan.
func TestMissingPullSecretsAreReported(t *testing.T) {
	l := newLab(t)
	web := l.Write("web", "  imagePullSecrets: [{name: login}]\n  containers: [{name: a, image: 'i:1'}]\n")
	for _, command := range []string{"plan", "apply"} {
		_, stderr := l.Must(command, web)
		want := "note: " + web + ":6:22: spec.imagePullSecrets[0]: Secret default/login is missing; " +
			"images are pulled without it"
		if strings.Count(stderr, want) != 1 {
			t.Errorf("%s: want %q once:\n%s", command, want, stderr)
		}
	}
}

// TestApplyAllReportsChangedSources checks that apply --all applies the stored copy, and reports a source file that has
// changed since. Objects that came from other files may be missing in it.
func TestApplyAllReportsChangedSources(t *testing.T) {
	spec := "  containers: [{name: a, image: 'i:1', envFrom: [{configMapRef: {name: c}}]}]\n"
	for name, c := range map[string]struct {
		change func(l *lab, path string)
		want   string
	}{
		"unchanged":           {func(*lab, string) {}, ""},
		"written differently": {func(l *lab, _ string) { l.Write("web", "  restartPolicy: Always\n"+spec) }, ""},
		"changed": {
			func(l *lab, _ string) { l.Write("web", strings.Replace(spec, "i:1", "i:2", 1)) },
			"has changed since it was applied",
		},
		"no manifest": {func(l *lab, _ string) { l.Write("web", "{") }, "would be refused now: "},
		"another pod": {
			func(l *lab, path string) { rename(l, l.Write("other", spec), path) },
			"no longer contains this pod",
		},
		"gone":   {func(l *lab, path string) { rename(l, path, path+".bak") }, "is gone"},
		"a pipe": {func(l *lab, path string) { rename(l, path, path+".bak"); fifo(l, path) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			path := l.Write("web", spec)
			config := l.Path("config.yaml")
			text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {A: b}}\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			l.Must("apply", "--wait", path, config)
			c.change(l, path)
			stdout, stderr := l.Must("apply", "--all")
			if stdout != "pod default/web unchanged\n" {
				t.Errorf("apply changed the pod: %s", stdout)
			}
			want := ""
			if c.want != "" {
				want = "  ! source: " + path + " " + c.want
			}
			if !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != min(len(want), 1) {
				t.Errorf("the output is %q, want %q", stderr, want)
			}
		})
	}
}

func rename(l *lab, from, to string) {
	l.T().Helper()
	if err := os.Rename(from, to); err != nil {
		l.T().Fatal(err)
	}
}

func fifo(l *lab, path string) {
	l.T().Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		l.T().Fatal(err)
	}
}

// TestWaitOnHeldPod checks that a hold of the whole pod names no container.
func TestWaitOnHeldPod(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	web := l.Write("web", "  containers: [{name: a, image: 'i:1', ports: [{containerPort: 80, hostPort: "+port+"}]}]\n")
	if code, _, stderr := l.Call("apply", "--wait", web); code != exit.NotYet ||
		!strings.Contains(stderr, "pod default/web cannot become ready: HostPortConflict: ") {
		t.Errorf("the pod: exit code %d\n%s", code, stderr)
	}
	l.Write("web", "  containers: [{name: a, image: 'i:1', env: [{name: A, valueFrom: {configMapKeyRef: {name: absent, key: k}}}]}]\n")
	if code, _, stderr := l.Call("apply", "--wait", web); code != exit.NotYet ||
		!strings.Contains(stderr, "cannot become ready: container a: CreateContainerConfigError: ") {
		t.Errorf("a container: exit code %d\n%s", code, stderr)
	}
}

// TestFailuresListRemainingWork checks the last lines after a failure. They name the held containers with the reasons,
// those that were not started, and the later work.
func TestFailuresListRemainingWork(t *testing.T) {
	l := newLab(t)
	l.Behave("bad", runtimetest.Behaviour{StartError: "injected failure"})
	web := l.Write("web", "  containers:\n  - {name: bad, image: 'i:1'}\n"+
		"  - {name: held, image: 'i:1', env: [{name: A, valueFrom: {configMapKeyRef: {name: absent, key: k}}}]}\n")
	const lacks = "held held (CreateContainerConfigError: ConfigMap default/absent is missing: " +
		"apply a file that has it, or add it with --configmap FILE)"
	if code, _, stderr := l.Call("apply", web); code != exit.Error ||
		!strings.HasSuffix(stderr, "\n  pod default/web: "+lacks+"\n") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, stdout, _ := l.Call("apply", web); code != exit.NotYet || !strings.Contains(stdout, lacks) {
		t.Errorf("while the other pod waits: exit code %d\n%s", code, stdout)
	}
	l.Behave("first", runtimetest.Behaviour{StartError: "injected failure"})
	chain := l.Write("chain", "  initContainers: [{name: first, image: 'i:1', restartPolicy: Always}, "+
		"{name: second, image: 'i:1'}]\n"+
		"  containers: [{name: a, image: 'i:1'}]\n")
	_, _, stderr := l.Call("apply", chain)
	if !strings.HasSuffix(stderr, "\n  pod default/chain: later init second, then a (when first has started)\n") {
		t.Errorf("the later steps:\n%s", stderr)
	}
}

// TestEditsCauseNoRestartDelay checks that containers stopped by an edit of the sandbox start again without delay,
// however quickly edits follow each other. This includes init containers.
func TestEditsCauseNoRestartDelay(t *testing.T) {
	l := newLab(t)
	done := runtimetest.Behaviour{After: soon}
	l.Behave("first", done, done, done, done)
	for spec, args := range map[string][]string{
		"  hostname: %s\n  containers: [{name: a, image: 'i:1'}]\n": {"apply"},
		"  hostname: %s\n  initContainers: [{name: first, image: 'i:1'}]\n  containers: [{name: a, image: 'i:1'}]\n": {
			"apply", "--wait=started",
		},
	} {
		for _, host := range []string{"one", "two", "three", "four"} {
			stdout, stderr := l.Must(append(args, l.Write("edited", fmt.Sprintf(spec, host)))...)
			if strings.Contains(stdout+stderr, "held") {
				t.Errorf("%s:\n%s%s", host, stdout, stderr)
			}
		}
		l.Must("delete", "edited")
	}
}

// TestPlanReportsChangedSource checks the plan of a stored copy whose file has changed. It reports the change and the
// command that shows it. A file that is missing or has the same pod is not reported.
func TestPlanReportsChangedSource(t *testing.T) {
	l := newLab(t)
	spec := "  containers: [{name: a, image: 'i:1'}]\n"
	path := l.Write("web", spec)
	l.Must("apply", path)
	check := func(what string, want int, wantMessage string) {
		t.Helper()
		code, stdout, _ := l.Call("plan", "--exit-code", "web")
		if code != want || !strings.Contains(stdout, wantMessage) || strings.Contains(stdout, "source") != (want != exit.OK) {
			t.Errorf("%s: exit code %d\n%s", what, code, stdout)
		}
	}
	check("the same", exit.OK, "No changes. ")
	l.Write("web", "  activeDeadlineSeconds: 7000\n"+spec)
	check("an edit", exit.Pending, "web.yaml has changed since it was applied (spec.activeDeadlineSeconds); `podctl plan ")
	l.Write("web", "  nonsense: 7\n"+spec)
	check("a refused manifest", exit.Pending, "web.yaml would be refused now: ")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("none", exit.OK, "No changes. ")
}

// TestEditWithoutSteps checks that plan and apply agree on an edit that starts and stops nothing, and that the next
// plan is empty.
func TestEditWithoutSteps(t *testing.T) {
	l := newLab(t)
	spec := "  containers: [{name: a, image: 'i:1'}]\n"
	path := l.Write("web", spec)
	l.Must("apply", path)
	l.Write("web", "  activeDeadlineSeconds: 7000\n"+spec)
	code, stdout, _ := l.Call("plan", "--exit-code", path)
	if code != exit.Pending || !strings.Contains(stdout, "  ~ spec.activeDeadlineSeconds: + 7000  # no restart\n") ||
		!strings.Contains(stdout, "Plan: 1 field to record, 2 unchanged. Nothing restarts.") {
		t.Errorf("plan: exit code %d\n%s", code, stdout)
	}
	code, stdout, _ = l.Call("apply", "--exit-code", path)
	if code != exit.NotYet || stdout != "pod default/web applied: 1 field recorded, 2 unchanged\n" {
		t.Errorf("apply: exit code %d\n%s", code, stdout)
	}
	if code, stdout, _ = l.Call("plan", "--exit-code", path); code != exit.OK ||
		!strings.Contains(stdout, "No changes. ") {
		t.Errorf("plan after apply: exit code %d\n%s", code, stdout)
	}
}

// TestApplyActsOnItsOwnProbes checks that --probe restarts a container on a slow machine. There, the time from the
// probe's answer to the plan exceeds the time in which the probe fails.
func TestApplyActsOnItsOwnProbes(t *testing.T) {
	l := newLab(t)
	path := l.Write("sick", "  containers:\n"+
		"  - {name: a, image: i:1, livenessProbe: {exec: {command: [check]}, periodSeconds: 1, failureThreshold: 1}}\n")
	l.Must("apply", path)
	l.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse { return &runtimeapi.ExecSyncResponse{ExitCode: 1} })
	looks := time.Duration(0)
	slow := func() time.Time { looks++; return time.Now().Add(looks * 5 * time.Second) }
	for _, c := range []struct{ command, want string }{
		{"plan", "replace   # liveness probe failed"}, {"apply", "applied: 1 replaced"},
	} {
		var out, errs bytes.Buffer
		commands.Main(t.Context(), commandstest.Env("", &out, &errs, slow), l.Args(c.command, "--probe", path))
		if text := out.String() + errs.String(); !strings.Contains(text, c.want) {
			t.Errorf("%s --probe: no %q in\n%s", c.command, c.want, text)
		}
	}
}
