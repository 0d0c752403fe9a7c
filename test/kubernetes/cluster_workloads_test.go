package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// workload creates one object of testdata/cluster/workloads.yaml.
func (c *cluster) workload(t *testing.T, kind, name string) {
	t.Helper()
	for text := range strings.SplitSeq(read(t, clusterFiles+"/workloads.yaml"), "\n---\n") {
		if strings.Contains(text, "kind: "+kind+"\n") && strings.Contains(text, "metadata: {name: "+name+"}\n") {
			c.mustWith(t, text, "apply", "-f", "-")
			return
		}
	}
	t.Fatalf("no %s %s", kind, name)
}

// values returns a value of each pod with a label, sorted.
func (c *cluster) values(t *testing.T, label, path string) []string {
	t.Helper()
	text := c.must(t, "get", "pods", "-l", label, "-o", `jsonpath={range .items[*]}{`+path+`}{"\n"}{end}`)
	all := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(all)
	return all
}

// testDeployment scales a Deployment, and changes its image forward and back.
func (c *cluster) testDeployment(t *testing.T) {
	c = c.in(t, "deployment")
	c.workload(t, "Deployment", "web")
	c.rollout(t, "deployment/web")
	first := c.values(t, "app=web", ".metadata.uid")
	c.must(t, "scale", "deployment/web", "--replicas=4")
	c.rollout(t, "deployment/web")
	if all := c.values(t, "app=web", ".metadata.uid"); len(all) != 4 || !slices.Contains(all, first[0]) {
		t.Errorf("%d pods after scaling: %v, first %v", len(all), all, first)
	}
	c.must(t, "scale", "deployment/web", "--replicas=2")
	c.settled(t, "app=web", webImage)
	c.must(t, "set", "image", "deployment/web", "web="+newWebImage)
	c.rollout(t, "deployment/web")
	c.settled(t, "app=web", newWebImage)
	c.must(t, "rollout", "undo", "deployment/web")
	c.rollout(t, "deployment/web")
	c.settled(t, "app=web", webImage)
	before := c.values(t, "app=web", ".metadata.uid")
	c.must(t, "rollout", "restart", "deployment/web")
	c.rollout(t, "deployment/web")
	c.settled(t, "app=web", webImage)
	for _, uid := range c.values(t, "app=web", ".metadata.uid") {
		if slices.Contains(before, uid) {
			t.Errorf("pod %s was not replaced", uid)
		}
	}
	// An image that does not exist stops the rollout, and all old pods stay.
	c.must(t, "set", "image", "deployment/web", "web=registry.example.com/absent:1")
	c.prove(t, "ImagePullBackOff", "get", "pods", "-l", "app=web", "-o",
		"jsonpath={.items[*].status.containerStatuses[0].state.waiting.reason}")
	c.prints(t, "2", "get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")
	c.must(t, "rollout", "undo", "deployment/web")
	c.rollout(t, "deployment/web")
	c.settled(t, "app=web", webImage)
}

// settled waits until the pods are two with an image, all ready and without restarts.
func (c *cluster) settled(t *testing.T, label, image string) {
	t.Helper()
	until(t, func() string {
		states := c.values(t, label, `.spec.containers[0].image} {.status.containerStatuses[*].restartCount} {.status.conditions[?(@.type=="Ready")].status`)
		want := image + " 0 True"
		if !slices.Equal(states, []string{want, want}) {
			return fmt.Sprintf("%q, want twice %q", states, want)
		}
		return ""
	})
}

// testStatefulSet checks that pods start and are replaced in their order, and that a deleted pod returns with its name.
func (c *cluster) testStatefulSet(t *testing.T) {
	c = c.in(t, "statefulset")
	c.workload(t, "Service", "db")
	c.workload(t, "StatefulSet", "db")
	c.rollout(t, "statefulset/db")
	c.inOrder(t, "db-0", "db-1")
	uid := c.get(t, "db-0", "{.metadata.uid}")
	c.must(t, "delete", "pod", "db-0")
	c.rollout(t, "statefulset/db")
	c.ready(t, "db-0")
	if now := c.get(t, "db-0", "{.metadata.uid}"); now == uid {
		t.Errorf("db-0 still has uid %s", uid)
	}
	uid = c.get(t, "db-1", "{.metadata.uid}")
	c.must(t, "delete", "pod", "db-1", "--force", "--grace-period=0")
	until(t, func() string {
		if r := c.call(t, "", "get", "pod", "db-1", "-o", "jsonpath={.metadata.uid}"); r.stdout == uid || r.code != 0 {
			return "db-1 is not back: " + r.stdout + r.stderr
		}
		return ""
	})
	c.ready(t, "db-1")
	c.prints(t, "db-1\n", "exec", "db-1", "--", "hostname")
	c.must(t, "set", "image", "statefulset/db", "db="+newWebImage)
	c.rollout(t, "statefulset/db")
	c.inOrder(t, "db-1", "db-0")
	c.settled(t, "app=db", newWebImage)
	c.must(t, "scale", "statefulset/db", "--replicas=3")
	c.rollout(t, "statefulset/db")
	c.must(t, "scale", "statefulset/db", "--replicas=0")
	c.prove(t, "", "get", "pods", "-o", "name")
}

// inOrder checks that a pod was created when the one before it was ready.
func (c *cluster) inOrder(t *testing.T, first, second string) {
	t.Helper()
	ready := c.get(t, first, `{.status.conditions[?(@.type=="Ready")].lastTransitionTime}`)
	if created := c.get(t, second, "{.metadata.creationTimestamp}"); created < ready {
		t.Errorf("%s was created at %s, and %s was ready at %s", second, created, first, ready)
	}
}

// testJobs checks how Jobs end.
func (c *cluster) testJobs(t *testing.T) {
	c = c.in(t, "jobs")
	c.workload(t, "CronJob", "every-minute")
	for _, name := range []string{"three", "failing", "again", "late", "cleaned"} {
		c.workload(t, "Job", name)
	}
	ends := func(name, condition string) {
		t.Helper()
		c.must(t, "wait", "job/"+name, "--for", "condition="+condition, "--timeout", patience.String())
	}
	ends("three", "Complete")
	logs := strings.Split(strings.TrimSpace(c.must(t, "logs", "-l", "job-name=three", "--tail=-1")), "\n")
	slices.Sort(logs)
	if !slices.Equal(logs, []string{"index 0", "index 1", "index 2"}) {
		t.Errorf("%q", logs)
	}
	ends("failing", "Failed")
	if got := c.values(t, "job-name=failing", ".status.phase} {.status.containerStatuses[0].state.terminated.exitCode"); !slices.Equal(
		got, []string{"Failed 3", "Failed 3"}) {
		t.Errorf("%q", got)
	}
	c.prints(t, "BackoffLimitExceeded", "get", "job", "failing", "-o", `jsonpath={.status.conditions[?(@.type=="Failed")].reason}`)
	ends("again", "Complete")
	if got := c.values(t, "job-name=again", ".status.phase} {.status.containerStatuses[0].restartCount"); !slices.Equal(
		got, []string{"Succeeded 1"}) {
		t.Errorf("%q", got)
	}
	ends("late", "Failed")
	c.prints(t, "DeadlineExceeded", "get", "job", "late", "-o", `jsonpath={.status.conditions[?(@.type=="Failed")].reason}`)
	until(t, func() string {
		if r := c.call(t, "", "get", "job", "cleaned"); r.code == 0 {
			return "the Job is not removed: " + r.stdout
		}
		return ""
	})
	until(t, func() string {
		done := c.must(t, "get", "jobs", "-o", `jsonpath={.items[?(@.status.succeeded==1)].metadata.name}`)
		for job := range strings.FieldsSeq(done) {
			if strings.HasPrefix(job, "every-minute-") {
				return ""
			}
		}
		return "the CronJob has made no Job"
	})
}
