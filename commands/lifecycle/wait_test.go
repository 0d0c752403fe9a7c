package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// twoContainers is a pod of two containers, with a restart policy and the fields of both.
func twoContainers(policy, a, b string) string {
	return fmt.Sprintf(
		"  restartPolicy: %s\n  containers: [{name: a, image: 'i:1', %s}, {name: b, image: 'i:1', %s}]\n", policy, a, b)
}

// TestExitedContainerEndsAWait checks that a wait ends if the pod can neither become ready nor succeed, because a
// container has ended for good.
func TestExitedContainerEndsAWait(t *testing.T) {
	const onlyTime = "is not ready in time"
	all := "restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]"
	for name, c := range map[string]struct {
		spec, goal string
		exit       int32
		want       string
	}{
		"failed": {
			twoContainers("Never", "", ""), "ready", 3,
			"cannot become ready: container a has exited 3 and is not restarted",
		},
		"failed before it started": {
			twoContainers("Never", "", ""), "started", 3, "cannot become started: container a has exited 3",
		},
		"next to a container that never ends": {
			twoContainers("Always", "restartPolicy: Never", ""), "ready", 0,
			"container a has exited 0 and is not restarted",
		},
		"restarts by its policy": {twoContainers("Never", "restartPolicy: OnFailure", ""), "ready", 3, onlyTime},
		"a rule may restart all": {twoContainers("Never", "", all), "ready", 3, onlyTime},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Behave("a", runtimetest.Behaviour{After: soon, ExitCode: c.exit},
				runtimetest.Behaviour{After: soon, ExitCode: c.exit})
			web := l.Write("web", c.spec)
			for _, args := range [][]string{{"apply", "--wait=" + c.goal, web}, {"wait", "--for=" + c.goal, web}} {
				l.InTime("--timeout", args, func(code int, text string) bool {
					return code == exit.NotYet && strings.Contains(text, c.want)
				})
			}
		})
	}
}

// TestWaitNamesUnfinishedContainers checks the wait for a pod that succeeds after all its containers have ended. The
// wait names the containers, because their end cannot be predicted.
func TestWaitNamesUnfinishedContainers(t *testing.T) {
	const reason = "container a has exited 0 and is not restarted: the pod is ready only once all its containers have ended\n"
	l := newLab(t)
	l.Behave("a", runtimetest.Behaviour{After: soon})
	l.Behave("b", runtimetest.Behaviour{After: 5 * time.Second})
	web := l.Write("web", twoContainers("OnFailure", "", ""))
	for _, c := range []struct {
		want int
		args []string
	}{
		{exit.NotYet, []string{"apply", "--wait", "--timeout", "1500ms", web}},
		{exit.NotYet, []string{"wait", "--timeout", "1500ms", "web"}},
		{exit.OK, []string{"wait", "web"}},
	} {
		code, _, stderr := l.Call(c.args...)
		if code != c.want || strings.Count(stderr, "pod default/web: waiting: "+reason) != 1 {
			t.Errorf("%v: exit code %d\n%s", c.args, code, stderr)
		}
		if code != exit.OK &&
			!strings.Contains(stderr, "pod default/web is not ready in time: "+strings.TrimSpace(reason)) {
			t.Errorf("%v: %s", c.args, stderr)
		}
	}
}
