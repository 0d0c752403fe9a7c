package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestWaitForADeployment: condition=Available is that of the Deployment, as with kubectl, in any case of letters.
func TestWaitForADeployment(t *testing.T) {
	l := newLab(t)
	l.Must("apply", "--wait", written(l, "web", deployment(2, "i:1", "")))
	for _, goal := range []string{"condition=Available", "condition=available=true", "condition=Progressing"} {
		if out, _ := l.Must("wait", "--timeout", "5s", "--for="+goal, "deployment/web"); !strings.HasPrefix(out, "deployment default/web is ") {
			t.Errorf("%s: %s", goal, out)
		}
	}
	code, _, stderr := l.Call("wait", "--timeout", "100ms", "--for=condition=Available=False", "deploy/web")
	if code != exit.NotYet || !strings.Contains(stderr, "deployment default/web is not Available in time: 2 of 2 pods available") {
		t.Errorf("%d %s", code, stderr)
	}
	// Of the pods, as before.
	if out, _ := l.Must("wait", "--timeout", "5s", "--for=condition=Ready", "deployment/web"); !strings.Contains(out, "pod default/web-1 is Ready") {
		t.Errorf("%s", out)
	}
	if code, _, _ := l.Call("wait", "--for=condition=Available", "deployment/absent"); code != exit.Error {
		t.Errorf("one that is not there: %d", code)
	}
	out, _ := l.Must("get", "deploy/web", "-o", "jsonpath={.status.conditions[?(@.type==\"Available\")].status}")
	if out != "True" {
		t.Errorf("in the status: %s", out)
	}
}

// TestWaitForAJob: one that has failed never completes.
func TestWaitForAJob(t *testing.T) {
	l := newLab(t)
	l.Behave("a", runtimetest.Behaviour{After: soon, ExitCode: 1})
	file := written(l, "once", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  backoffLimit: 0\n  template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'i:1'}]}}\n")
	l.Call("apply", "--wait=completed", "--timeout", "5s", file)
	l.Must("wait", "--timeout", "5s", "--for=condition=failed", "job/once")
	if code, _, stderr := l.Call("wait", "--timeout", "5s", "--for=condition=complete", "job/once"); code != exit.NotYet || !strings.Contains(stderr, "cannot become complete: it has ended") {
		t.Errorf("%d %s", code, stderr)
	}
}
