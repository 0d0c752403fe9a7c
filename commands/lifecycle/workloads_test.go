package lifecycle_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// deployment is a Deployment with an image.
func deployment(replicas int, image, more string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: %d
%s  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: a, image: '%s'}]
`, replicas, more, image)
}

// written writes a manifest and returns its path.
func written(l *lab, name, text string) string {
	path := l.Path(name + ".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.T().Fatal(err)
	}
	return path
}

// TestDeploymentFromPlanToDelete checks that apply does what plan shows, that a second apply changes nothing, and that
// scale and delete remove the pods.
func TestDeploymentFromPlanToDelete(t *testing.T) {
	l := newLab(t)
	file := written(l, "web", deployment(2, "i:1", ""))
	stdout, _ := l.Must("plan", file)
	for _, want := range []string{
		"Deployment default/web · would be created\n", "Pod default/web-0 ·", "Pod default/web-1 ·",
		"deployment default/web: Pods: 2 to create.\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("plan: want %q:\n%s", want, stdout)
		}
	}
	if stdout, _ := l.Must("apply", "--wait", file); !strings.HasPrefix(stdout, "deployment default/web created\n") ||
		!strings.HasSuffix(stdout, "deployment default/web: 2 of 2 pods available\n") {
		t.Errorf("apply: %s", stdout)
	}
	if stdout, _ := l.Must("plan", "--exit-code", file); stdout != "Deployment default/web · is unchanged\n\n"+
		"deployment default/web: Pods: 2 unchanged.\n" {
		t.Errorf("plan afterwards: %q", stdout)
	}
	if stdout, _ := l.Must("get", "deploy"); !strings.Contains(stdout, "web") || !strings.Contains(stdout, "2/2") {
		t.Errorf("get: %s", stdout)
	}
	l.Must("scale", "--replicas=1", "deployment/web", "--wait")
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "pod/web-0\n" {
		t.Errorf("after scale: %s", stdout)
	}
	if stdout, _ := l.Must("delete", "deployment/web"); !strings.Contains(stdout, "deployment default/web deleted") {
		t.Errorf("delete: %s", stdout)
	}
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "" {
		t.Errorf("after delete: %s", stdout)
	}
	if code, _, stderr := l.Call("delete", "deployment/web"); code != exit.Error ||
		!strings.Contains(stderr, "no deployment default/web is stored here") {
		t.Errorf("a second delete: %d %s", code, stderr)
	}
}

// TestRollingUpdate checks that one pass makes the updates that the strategy allows and reports what the others wait
// for. The next pass continues, and undo restores a version.
func TestRollingUpdate(t *testing.T) {
	l := newLab(t)
	slowly := "  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n"
	l.Must("apply", "--wait", written(l, "web", deployment(2, "i:1", slowly)))
	edited := written(l, "web", deployment(2, "i:2", slowly))
	code, stdout, stderr := l.Call("plan", "--exit-code", edited)
	if code != exit.Pending ||
		!strings.Contains(stdout, "pod default/web-1 waits: 1 pods must stay available; "+
			"it is updated once one more is available.\n"+
			"deployment default/web: Pods: 1 to change, 1 waiting, 1 unchanged.\n") {
		t.Errorf("plan: %d\n%s%s", code, stdout, stderr)
	}
	if stdout, _ := l.Must("apply", edited); !strings.Contains(stdout,
		"deployment default/web: 1 of 2 pods updated, 2 available; apply again to continue") {
		t.Errorf("the first pass: %s", stdout)
	}
	if code, stdout, _ := l.Call("rollout", "status", "deployment/web"); code != exit.NotYet ||
		!strings.Contains(stdout, "1 of 2 pods updated") {
		t.Errorf("status during the rollout: %d %s", code, stdout)
	}
	if stdout, _ := l.Must("apply", "--all"); !strings.Contains(stdout, "deployment default/web: 2 of 2 pods available") {
		t.Errorf("the second pass: %s", stdout)
	}
	l.Must("rollout", "status", "deploy/web")
	if stdout, _ := l.Must("rollout", "history", "deployment/web"); !strings.Contains(stdout, "1         ") ||
		!strings.Contains(stdout, "i:2") {
		t.Errorf("history: %s", stdout)
	}
	l.Must("rollout", "undo", "deployment/web", "--wait")
	if stdout, _ := l.Must("get", "deploy/web", "-o", "jsonpath={.spec.template.spec.containers[0].image} "+
		"{.status.availableReplicas}"); stdout != "i:1 2" {
		t.Errorf("after undo: %s", stdout)
	}
	if code, _, stderr := l.Call("rollout", "undo", "deployment/web", "--to-revision", "7"); code != exit.Error ||
		!strings.Contains(stderr, "no earlier version 7") {
		t.Errorf("undo to a missing version: %d %s", code, stderr)
	}
}

// TestWorkloadsAndOtherPods checks that a pod of a workload cannot replace another pod, and that two workloads cannot
// have pods with the same name.
func TestWorkloadsAndOtherPods(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web-0", "  containers: [{name: a, image: 'i:1'}]\n"))
	file := written(l, "web", deployment(2, "i:1", ""))
	for _, command := range []string{"plan", "apply"} {
		if code, _, stderr := l.Call(command, file); code != exit.Refused ||
			!strings.Contains(stderr, "deployment default/web: another pod with the name default/web-0 exists") {
			t.Errorf("%s with the name of another pod: %d %s", command, code, stderr)
		}
	}
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "pod/web-0\n" {
		t.Errorf("afterwards: %s", stdout)
	}
	l.Must("delete", "web-0")
	set := strings.NewReplacer("kind: Deployment", "kind: ReplicaSet").Replace(deployment(1, "i:1", ""))
	if code, _, stderr := l.Call("apply", file, written(l, "set", set)); code != exit.Refused ||
		!strings.Contains(stderr, "two workloads have a pod with the name default/web-0") {
		t.Errorf("two workloads with the same pods: %d %s", code, stderr)
	}
}

// TestWorkloadNames checks that KIND/NAME selects the pods of a workload, and the first of them if a command needs one.
func TestWorkloadNames(t *testing.T) {
	l := newLab(t)
	l.Must("apply", written(l, "web", deployment(2, "i:1", "")))
	if stdout, _ := l.Must("wait", "deployment/web"); !strings.Contains(stdout, "pod default/web-0 is Ready") &&
		!strings.Contains(stdout, "pod default/web-0 is ready") {
		t.Errorf("wait: %s", stdout)
	}
	if stdout, stderr := l.Must("restart", "deployment/web"); !strings.Contains(stdout, "web-0") ||
		!strings.Contains(stdout, "web-1") {
		t.Errorf("restart: %s%s", stdout, stderr)
	}
	_, _, stderr := l.Call("exec", "deployment/web", "--", "true")
	if !strings.Contains(stderr, "Defaulted pod web-0 out of: web-0, web-1") {
		t.Errorf("exec: %s", stderr)
	}
	if code, _, stderr := l.Call("logs", "deployment/other"); code != exit.Error ||
		!strings.Contains(stderr, "deployment default/other has no pods on this node") {
		t.Errorf("logs of a workload without pods: %d %s", code, stderr)
	}
	for _, words := range [][]string{
		{"scale", "--replicas=2", "web"},
		{"scale", "deployment/web"},
		{"rollout", "status", "web"},
		{"apply", "--wait=completed", l.Path("web.yaml")},
		{"plan", "--save", l.Path("saved"), l.Path("web.yaml")},
	} {
		if code, _, stderr := l.Call(words...); code != exit.Error {
			t.Errorf("%v: %d %s", words, code, stderr)
		}
	}
	if stdout, _ := l.Must("get", "deploy,pods"); strings.Count(stdout, "NAME") != 2 ||
		!strings.Contains(stdout, "web-1") {
		t.Errorf("two kinds: %s", stdout)
	}
	stdout, _ := l.Must("validate", l.Path("web.yaml"))
	if !strings.Contains(stdout, "deployment default/web is valid") {
		t.Errorf("validate: %s", stdout)
	}
}

// TestJob checks that the tries of a Job run as parallelism allows, and that a wait ends with the Job.
func TestJob(t *testing.T) {
	job := `apiVersion: batch/v1
kind: Job
metadata: {name: pi}
spec:
  completions: 3
  parallelism: 2
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: job, image: 'i:1'}]
`
	l := newLab(t)
	l.Behave("job", slices.Repeat([]runtimetest.Behaviour{{After: soon}}, 3)...)
	stdout, _ := l.Must("apply", "--wait=completed", written(l, "pi", job))
	if !strings.HasSuffix(stdout, "job default/pi: 0 active, 3 succeeded, 0 failed\n") {
		t.Errorf("a Job: %s", stdout)
	}
	if stdout, _ := l.Must("get", "jobs"); !strings.Contains(stdout, "Complete") || !strings.Contains(stdout, "3/3") {
		t.Errorf("get: %s", stdout)
	}
	l.Must("delete", "job/pi")
	l.Behave("job", slices.Repeat([]runtimetest.Behaviour{{After: soon, ExitCode: 3}}, 2)...)
	if code, _, stderr := l.Call("apply", "--wait=completed", written(l, "pi", job)); code != exit.PodFailed ||
		!strings.Contains(stderr, "job default/pi has failed: BackoffLimitExceeded") {
		t.Errorf("a failed Job: %d %s", code, stderr)
	}
}

// TestDiff checks that the exit codes are those of kubectl diff.
func TestDiff(t *testing.T) {
	l := newLab(t)
	web := l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n")
	if code, stdout, _ := l.Call("diff", "-f", web); code != 1 || !strings.Contains(stdout, "Pod default/web") {
		t.Errorf("a new pod: %d %s", code, stdout)
	}
	l.Must("apply", web)
	if code, stdout, stderr := l.Call("diff", "-f", web); code != 0 {
		t.Errorf("no difference: %d %s%s", code, stdout, stderr)
	}
	if code, _, stderr := l.Call("diff", "-f", written(l, "bad", "{apiVersion: v1, kind: Pod}")); code != 2 ||
		stderr == "" {
		t.Errorf("a refused manifest: %d %s", code, stderr)
	}
	if code, _, _ := l.Call("diff"); code != 2 {
		t.Errorf("nothing: %d", code)
	}
}

// TestCronJob checks that a CronJob is stored, its Jobs can be run by hand, and delete removes them too.
func TestCronJob(t *testing.T) {
	l := newLab(t)
	file := written(l, "tick", `apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers: [{name: job, image: 'i:1'}]
`)
	stdout, _ := l.Must("apply", file)
	if !strings.Contains(stdout, "cronjob default/tick created\n"+
		"cronjob default/tick: podctl agent starts its Jobs; `podctl run --from cronjob/tick` runs one now") {
		t.Errorf("apply: %s", stdout)
	}
	if stdout, _ := l.Must("get", "cj"); !strings.Contains(stdout, "*/5 * * * *") ||
		!strings.Contains(stdout, "<none>") {
		t.Errorf("get: %s", stdout)
	}
	l.Behave("job", runtimetest.Behaviour{After: soon}, runtimetest.Behaviour{After: soon, ExitCode: 2},
		runtimetest.Behaviour{After: soon})
	if stdout, _ := l.Must("run", "--from", "cronjob/tick"); !strings.Contains(stdout, "0 active, 1 succeeded, 0 failed") {
		t.Errorf("run: %s", stdout)
	}
	if code, _, stderr := l.Call("run", "--from", "cj/tick"); code != exit.PodFailed ||
		!strings.Contains(stderr, "has failed: BackoffLimitExceeded") {
		t.Errorf("a failed run: %d %s", code, stderr)
	}
	if stdout, _ := l.Must("get", "jobs", "-o", "name"); strings.Count(stdout, "job/tick-manual-") != 2 {
		t.Errorf("jobs: %s", stdout)
	}
	l.Must("run", "--rm", "--from", "cronjob/tick")
	if stdout, _ := l.Must("delete", "cronjob/tick"); strings.Count(stdout, "job default/tick-manual-") != 2 ||
		strings.Count(stdout, "pod default/tick-manual-") != 2 {
		t.Errorf("delete: %s", stdout)
	}
	if stdout, _ := l.Must("get", "jobs,pods", "-o", "name"); stdout != "" {
		t.Errorf("left: %s", stdout)
	}
	for _, words := range [][]string{
		{"run", "--from", "tick"}, {"run", "--from", "cronjob/none"}, {"run", "--from", "cronjob/tick", file},
	} {
		if code, _, _ := l.Call(words...); code != exit.RunFailed {
			t.Errorf("%v: %d", words, code)
		}
	}
}
