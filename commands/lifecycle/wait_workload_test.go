package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestWaitForADeployment checks that condition=Available is that of the Deployment, as in kubectl, whatever the case of
// its letters.
func TestWaitForADeployment(t *testing.T) {
	l := newLab(t)
	l.Must("apply", "--wait", written(l, "web", deployment(2, "i:1", "")))
	for _, goal := range []string{"condition=Available", "condition=available=true", "condition=Progressing"} {
		if out, _ := l.Must("wait", "--for="+goal, "deployment/web"); !strings.HasPrefix(out,
			"deployment default/web is ") {
			t.Errorf("%s: %s", goal, out)
		}
	}
	l.InTime("--timeout", []string{
		"wait", "--for=condition=Available=False", "deploy/web",
	}, func(code int, text string) bool {
		return code == exit.NotYet &&
			strings.Contains(text, "deployment default/web is not Available in time: 2 of 2 pods updated, 2 available")
	})
	// Other conditions are those of the pods.
	if out, _ := l.Must("wait", "--for=condition=Ready", "deployment/web"); !strings.Contains(out,
		"pod default/web-1 is Ready") {
		t.Errorf("%s", out)
	}
	if code, _, _ := l.Call("wait", "--for=condition=Available", "deployment/absent"); code != exit.Error {
		t.Errorf("a missing workload: %d", code)
	}
	out, _ := l.Must("get", "deploy/web", "-o", "jsonpath={.status.conditions[?(@.type==\"Available\")].status}")
	if out != "True" {
		t.Errorf("status: %s", out)
	}
}

// TestWaitForAJob checks that a failed Job never completes.
func TestWaitForAJob(t *testing.T) {
	l := newLab(t)
	l.Behave("a", runtimetest.Behaviour{After: soon, ExitCode: 1})
	file := written(l, "once", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n"+
		"  backoffLimit: 0\n"+
		"  template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'i:1'}]}}\n")
	l.Call("apply", "--wait=completed", file)
	l.Must("wait", "--for=condition=failed", "job/once")
	code, _, stderr := l.Call("wait", "--for=condition=complete", "job/once")
	if code != exit.NotYet || !strings.Contains(stderr, "cannot become complete: it has finished") {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestStateAfterATimeout checks that, at the timeout, each incomplete workload is named with the last observed
// state of its pods.
func TestStateAfterATimeout(t *testing.T) {
	l := newLab(t)
	crashes := runtimetest.Behaviour{After: soon, ExitCode: 3}
	l.Behave("a", crashes, crashes, crashes, crashes, crashes, crashes)
	both := deployment(1, "i:1", "") + "---\n" + strings.ReplaceAll(deployment(1, "i:1", ""), "web", "db")
	l.InTime("--timeout", []string{"apply", "--wait", written(l, "both", both)}, func(code int, text string) bool {
		for _, name := range []string{"web", "db"} {
			if !strings.Contains(text, fmt.Sprintf("deployment default/%s, 0 of 1 pods", name)) ||
				!strings.Contains(text, fmt.Sprintf("pod default/%s-0 is ", name)) {
				return false
			}
		}
		return code == exit.NotYet
	})
	l.InTime("--timeout", []string{
		"wait", "--for=condition=Available", "deployment/web",
	}, func(code int, text string) bool {
		return code == exit.NotYet && strings.Contains(text, "pod default/web-0 is ")
	})
}

// TestStateOfAnInterruptedPass checks that the result of a pass which the timeout cut off is observed again. If the
// runtime does not answer in time, the printed state is marked as an earlier one.
func TestStateOfAnInterruptedPass(t *testing.T) {
	for answers, want := range map[bool]string{
		true:  "deployment default/web, 0 of 1 pods updated, 0 available; pod default/web-0 is ContainerCreating",
		false: "deployment default/web, state before the last pass, 0 of 1 pods updated",
	} {
		var report string
		if !slices.ContainsFunc(commandstest.Limits(), func(limit string) bool {
			l := newLab(t)
			file := written(l, "web", deployment(1, "i:absent", ""))
			var pulls atomic.Bool
			l.Fail(runtimetest.Fault{
				Method: "PullImage", Times: 99, Hangs: true, Only: func(any) bool { pulls.Store(true); return true },
			})
			l.Fail(runtimetest.Fault{
				Method: "ListContainers", Times: 99, Hangs: true,
				Only: func(any) bool { return pulls.Load() && !answers },
			})
			code, stdout, stderr := l.Call("apply", "--wait", "--timeout", limit, file)
			report = fmt.Sprintf("%d\n%s%s", code, stdout, stderr)
			return code == exit.NotYet && strings.Contains(stderr, want) && strings.Contains(stdout, "0 of 1") == answers
		}) {
			t.Errorf("%t: without %q: %s", answers, want, report)
		}
	}
}

// TestJobsWithoutPods checks that the reason why a Job has no logs is printed.
func TestJobsWithoutPods(t *testing.T) {
	l := newLab(t)
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  suspend: true\n" +
		"  template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'i:1'}]}}\n"
	l.Must("apply", written(l, "once", job))
	if code, _, stderr := l.Call("logs", "job/once"); code != exit.Error ||
		!strings.Contains(stderr, "job default/once has no pods: it is suspended") {
		t.Errorf("%d %s", code, stderr)
	}
	l.Behave("a", runtimetest.Behaviour{After: soon})
	l.Must("apply", "--wait=completed", written(l, "once", strings.Replace(job, "suspend: true", "suspend: false", 1)))
	l.Must("delete", "pod/once-0")
	if code, _, stderr := l.Call("logs", "job/once"); code != exit.Error ||
		!strings.Contains(stderr, "it has finished (Complete), and its pods and their logs were deleted") {
		t.Errorf("%d %s", code, stderr)
	}
}
