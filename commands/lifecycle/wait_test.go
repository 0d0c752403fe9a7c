package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

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
	web := l.Write("web", twoContainers("OnFailure", "", ""))
	for _, args := range [][]string{{"apply", "--wait", web}, {"wait", "web"}} {
		l.InTime("--timeout", args, func(code int, text string) bool {
			return code == exit.NotYet && strings.Count(text, "pod default/web: waiting: "+reason) == 1 &&
				strings.Contains(text, "pod default/web is not ready in time: "+strings.TrimSpace(reason))
		})
	}
	// The other container ends during the next wait.
	calls := 0
	l.Fail(runtimetest.Fault{Method: "ListContainers", Times: 1, Only: func(any) bool {
		if calls++; calls == 10 {
			go l.Exit("b", 0)
		}
		return false
	}})
	if _, stderr := l.Must("wait", "web"); strings.Count(stderr, "pod default/web: waiting: "+reason) != 1 {
		t.Error(stderr)
	}
}
