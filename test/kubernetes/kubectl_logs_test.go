package kubernetes

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// testLogs checks logs of running, restarted, finished and init containers, and their selection.
func (k *kubectl) testLogs(t *testing.T) {
	// The first run of the container fails, the second stays.
	k.makeShell(t, "again", "if [ -e /data/second ]; then echo second run; "+stay+"; fi; echo first run; touch /data/second; exit 3", false)
	main := containers("main log --lines 3 --every 1ms")
	k.make(t, "done", object{
		"restartPolicy": "Never", "initContainers": containers("one log --lines 2 --every 1ms"), "containers": main,
	})
	k.await(t, "done", "jsonpath={.status.phase}=Succeeded")
	k.prints(t, "line 1\nline 2\n", "logs", "done", "-c", "one")
	k.prints(t, "line 1\nline 2\nline 3\n", "logs", "done", "-c", "main")
	k.prints(t, "line 1\nline 2\nline 3\n", "logs", "done", "-c", "main", "-f")
	k.prints(t, "[pod/done/one] line 2\n[pod/done/main] line 3\n", "logs", "done", "--all-containers", "--prefix", "--tail=1")
	k.prints(t, "line 3\n", "logs", "done", "-c", "main", "--tail=1", "--since=1h")
	k.prints(t, "", "logs", "done", "-c", "main", "--since-time=2100-01-01T00:00:00Z")
	k.prints(t, "line 1\nli", "logs", "done", "-c", "main", "--limit-bytes=9")
	if got := k.must(t, "logs", "done", "-c", "main", "--timestamps", "--tail=1"); !regexp.MustCompile(
		`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z line 3\n$`).MatchString(got) {
		t.Error(got)
	}
	k.fails(t, 1, "\nError from server (BadRequest): previous terminated container \"main\" in pod \"done\" not found\n",
		"logs", "done", "-c", "main", "-p")
	k.fails(t, 1, "\nerror: container absent is not valid for pod done out of: main, one (init)\n", "logs", "done", "-c", "absent")

	k.await(t, "again", "jsonpath={.status.containerStatuses[0].restartCount}=1")
	k.ready(t, "again")
	k.prints(t, "first run\n", "logs", "again", "-p")
	until(t, func() string {
		if got := k.must(t, "logs", "again"); got != "second run\n" {
			return "the log of the second run: " + got
		}
		return ""
	})
	// A log that is followed ends with its container.
	follow := startSession(t, k.command(t, "logs", "-f", "again"))
	follow.expect(t, "second run\n", 1)
	k.must(t, "delete", "pod", "again")
	follow.end(t, 0)
}

// testWaiting checks the messages about containers that do not run.
func (k *kubectl) testWaiting(t *testing.T) {
	k.make(t, "init", object{"initContainers": containers("one sleep"), "containers": containers("main serve")})
	k.make(t, "nopull", object{"containers": []object{{"name": "main", "image": "registry.local/podctl/absent:1"}}})
	k.make(t, "never", object{"containers": []object{{
		"name": "main", "image": "registry.local/podctl/absent:1", "imagePullPolicy": "Never",
	}}})
	k.make(t, "noconfig", object{"containers": []object{{
		"name": "main", "image": firstImage, "envFrom": []object{{"configMapRef": object{"name": "absent"}}},
	}}})
	k.make(t, "failed", object{"restartPolicy": "Never", "containers": containers("main exit 3")})
	k.await(t, "failed", "jsonpath={.status.phase}=Failed")
	k.await(t, "init", "jsonpath={.status.initContainerStatuses[0].state.running}")
	for pod, reason := range map[string]string{
		"init": "PodInitializing", "nopull": "trying and failing to pull image", "never": "ErrImageNeverPull",
		"noconfig": "CreateContainerConfigError",
	} {
		want := fmt.Sprintf("Error from server (BadRequest): container \"main\" in pod %q is waiting to start: %s\n", pod, reason)
		until(t, func() string {
			if r := k.call(t, "", "logs", pod, "-c", "main"); r.code != 1 || r.stderr != want {
				return fmt.Sprintf("logs of %s: exit code %d\n%swant\n%s", pod, r.code, r.stderr, want)
			}
			return ""
		})
		k.fails(t, 1, "\nerror: unable to upgrade connection: container not found (\"main\")\n",
			"exec", pod, "-c", "main", "--", "/demo", "print")
		k.fails(t, 1, "\nerror: unable to upgrade connection: container main not found in pod "+pod+"_default\n",
			"attach", pod, "-c", "main")
	}
	const completed = "completed pod; current phase is Failed\n"
	k.fails(t, 1, "\nerror: cannot exec into a container in a "+completed, "exec", "failed", "--", "/demo", "print")
	k.fails(t, 1, "\nerror: cannot attach a container in a "+completed, "attach", "failed")
	k.prints(t, "exiting with 3\n", "logs", "failed")
	k.prints(t, "sleeping\n", "logs", "init", "-c", "one")
	// The log is followed until the container has begun.
	follow := startSession(t, k.command(t, "logs", "-f", "init", "-c", "main"))
	follow.expect(t, "is waiting to start: PodInitializing", 1)
	follow.kill()
	if got := k.must(t, "get", "pod", "init", "--no-headers"); !strings.Contains(got, "Init:0/1") {
		t.Error(got)
	}
}
