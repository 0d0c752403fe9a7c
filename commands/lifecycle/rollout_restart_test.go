package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// made lists the sandboxes that the runtime created after the first `since` ones, as pod and attempt, for example
// "web-0:1".
func (l *lab) made(since int) []string {
	var made []string
	for _, s := range l.Created().Sandboxes[since:] {
		made = append(made, fmt.Sprintf("%s:%d", s.GetMetadata().GetName(), s.GetMetadata().GetAttempt()))
	}
	return made
}

// wantMade compares the sandboxes created since the last call.
func (l *lab) wantMade(since *int, want ...string) {
	l.T().Helper()
	if got := l.made(*since); !slices.Equal(got, want) {
		l.T().Errorf("created %v, want %v", got, want)
	}
	*since = len(l.Created().Sandboxes)
}

// TestRolloutRestart checks that pods are recreated as the strategy allows, and then count as updated. The restart is a
// version of its own and survives another apply of the manifest. Undo restarts nothing.
func TestRolloutRestart(t *testing.T) {
	l := newLab(t)
	slowly := "  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n"
	file := written(l, "web", deployment(3, "i:1", slowly))
	l.Must("apply", "--wait", file)
	since := len(l.Created().Sandboxes)

	stdout, _ := l.Must("rollout", "restart", "deployment/web", "--dry-run")
	if !strings.Contains(stdout, "its workload was restarted at ") ||
		!strings.Contains(stdout, "Pods: 1 to change, 2 waiting, 2 unchanged.") {
		t.Errorf("dry run: %s", stdout)
	}
	l.wantMade(&since)
	stdout, _ = l.Must("rollout", "restart", "deployment/web")
	if !strings.HasPrefix(stdout, "deployment default/web restarted\n") ||
		!strings.Contains(stdout, "1 of 3 pods updated, 3 available") {
		t.Errorf("restart: %s", stdout)
	}
	l.wantMade(&since, "web-0:1")
	if code, stdout, _ := l.Call("rollout", "status", "deployment/web"); code != exit.NotYet {
		t.Errorf("during the rollout: %d %s", code, stdout)
	}
	if stdout, _ := l.Must("apply", "--wait", file); !strings.HasPrefix(stdout, "deployment default/web unchanged\n") {
		t.Errorf("the manifest again: %s", stdout)
	}
	l.wantMade(&since, "web-1:1", "web-2:1")
	if code, stdout, stderr := l.Call("plan", "--exit-code", file); code != exit.OK {
		t.Errorf("afterwards: %d\n%s%s", code, stdout, stderr)
	}

	l.Must("rollout", "restart", "deploy/web", "--wait")
	l.wantMade(&since, "web-0:2", "web-1:2", "web-2:2")
	if stdout, _ := l.Must("rollout", "history", "deployment/web"); strings.Count(stdout, "Z\n") != 2 ||
		!strings.Contains(stdout, "<none>") || !strings.Contains(stdout, "RESTARTED AT") {
		t.Errorf("history: %s", stdout)
	}
	l.Must("rollout", "undo", "deployment/web", "--wait")
	l.Must("rollout", "undo", "deployment/web", "--to-revision", "1", "--wait")
	if stdout, _ := l.Must("apply", file); !strings.HasPrefix(stdout, "deployment default/web unchanged\n") {
		t.Errorf("the manifest after undo: %s", stdout)
	}
	l.wantMade(&since)
}

// TestRolloutRestartInOrder checks that a StatefulSet restarts from its last pod to its first, and that each workload
// has its own rollout.
func TestRolloutRestartInOrder(t *testing.T) {
	l := newLab(t)
	set := strings.NewReplacer(
		"kind: Deployment", "kind: StatefulSet",
		"selector: {m", "serviceName: web\n  selector: {m",
	).Replace(deployment(3, "i:1", ""))
	daemon := strings.NewReplacer(
		"kind: Deployment", "kind: DaemonSet",
		"  replicas: 1\n", "",
		"name: web,", "name: node,",
	).Replace(deployment(1, "i:1", ""))
	l.Must("apply", "--wait", written(l, "web", set), written(l, "node", daemon))
	since := len(l.Created().Sandboxes)
	stdout, _ := l.Must("rollout", "restart", "sts/web", "daemonset/node", "sts/web")
	if !strings.HasPrefix(stdout, "statefulset default/web restarted\ndaemonset default/node restarted\n") {
		t.Errorf("restart: %s", stdout)
	}
	if made := l.made(since); !slices.Contains(made, "web-2:1") || !slices.Contains(made, "node-0:1") ||
		len(made) != 2 {
		t.Errorf("the first pass created %v", made)
	}
	since = len(l.Created().Sandboxes)
	l.Must("apply", "--all", "--wait")
	l.wantMade(&since, "web-1:1", "web-0:1")
}

// TestRolloutRestartRefused checks that podctl refuses the same restarts as kubectl, all of them at once, and then
// restarts nothing.
func TestRolloutRestartRefused(t *testing.T) {
	l := newLab(t)
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: pi}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: 'i:1'}]}}}\n"
	paused := strings.Replace(deployment(1, "i:1", "  paused: true\n"), "name: web,", "name: still,", 1)
	l.Must("apply", written(l, "web", deployment(1, "i:1", "")), written(l, "pi", job), written(l, "still", paused))
	since := len(l.Created().Sandboxes)
	code, _, stderr := l.Call("rollout", "restart", "deployment/web", "job/pi", "deployment/still", "deployment/none")
	for _, want := range []string{
		"job default/pi: restarting is not supported", "deployment default/still: can't restart paused deployment",
		"no deployment default/none is stored here",
	} {
		if code != exit.Error || !strings.Contains(stderr, want) {
			t.Errorf("want %q: %d %s", want, code, stderr)
		}
	}
	for _, words := range [][]string{
		{"rollout", "restart"},
		{"rollout", "restart", "web"},
		{"rollout", "restart", "pod/web-0"},
		{"rollout", "restart", "deployment"},
	} {
		if code, _, stderr := l.Call(words...); code != exit.Error {
			t.Errorf("%v: %d %s", words, code, stderr)
		}
	}
	l.wantMade(&since)
	if stdout, _ := l.Must("rollout", "history", "deployment/web"); strings.Count(stdout, "<none>") != 1 {
		t.Errorf("history: %s", stdout)
	}
}

// TestRolloutArgumentsOfKubectl checks that KIND NAME means KIND/NAME, and that an unknown subcommand is an error.
func TestRolloutArgumentsOfKubectl(t *testing.T) {
	l := newLab(t)
	l.Must("apply", "--wait", written(l, "web", deployment(1, "i:1", "")))
	for _, command := range []string{"status", "history"} {
		if out, _ := l.Must("rollout", command, "deployment", "web"); out == "" {
			t.Errorf("%s prints nothing", command)
		}
	}
	l.Must("rollout", "status", "deploy/web", "--watch")
	if code, _, stderr := l.Call("rollout", "undo", "deploy", "web"); code != exit.Error ||
		strings.Contains(stderr, "arg(s)") {
		t.Errorf("undo of the first version: %d %s", code, stderr)
	}
	if code, _, stderr := l.Call("rollout", "pause", "deploy/web"); code != exit.Error ||
		!strings.Contains(stderr, `unknown command "pause"`) {
		t.Errorf("pause: %d %s", code, stderr)
	}
	if code, _, _ := l.Call("rollout", "status", "web", "other"); code != exit.Error {
		t.Errorf("two names: %d", code)
	}
}

// TestRolloutStatusWaits checks that --watch waits until the timeout if no program continues the rollout.
func TestRolloutStatusWaits(t *testing.T) {
	l := newLab(t)
	slowly := "  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n"
	l.Must("apply", "--wait", written(l, "web", deployment(3, "i:1", slowly)))
	l.Must("rollout", "restart", "deployment/web")
	l.InTime("--timeout", []string{"rollout", "status", "deployment/web", "--watch"}, func(code int, text string) bool {
		return code == exit.NotYet && strings.Count(text, "1 of 3 pods updated") == 1 &&
			strings.Contains(text, "\ndeployment default/web: 1 of 3")
	})
}
