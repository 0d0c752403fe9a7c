package kubernetes

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// testApplications runs manifests as users have them.
func (c *cluster) testApplications(t *testing.T) {
	c.testApplication(t, "guestbook", "http://frontend/hostname", "http://redis-leader:6379/", "http://redis-follower:6379/")
	c.testApplication(t, "bookinfo", "http://productpage:9080/hostname", "http://reviews.bookinfo.svc:9080/")
	c.testApplication(t, "boutique", "http://frontend-external.boutique.svc.cluster.local/hostname", "http://redis-cart:6379")
	c.testApplication(t, "platform", "http://"+nodeIP+":8880/hostname", "http://"+nodeIP+":9100/hostname")
}

// testApplication waits until all workloads of a file run, and requests URLs from inside of the namespace.
func (c *cluster) testApplication(t *testing.T, name string, urls ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		inside := c.in(t, name)
		inside.must(t, "apply", "-f", filepath.Join(applicationsDir, name+".yaml"))
		for workload := range strings.FieldsSeq(inside.must(t, "get", "deployments,daemonsets", "-o", "name")) {
			inside.rollout(t, workload)
		}
		for job := range strings.FieldsSeq(inside.must(t, "get", "jobs", "-o", "name")) {
			inside.must(t, "wait", job, "--for", "condition=Complete", "--timeout", patience.String())
		}
		for _, url := range urls {
			until(t, func() string { // kube-proxy sees the pods later than their clients
				if got := inside.fetchInside(t, url); got != "200" {
					return fmt.Sprintf("%q from %s", got, url)
				}
				return ""
			})
		}
		if restarted := inside.must(t, "get", "pods", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].restartCount}{"\n"}{end}`); strings.Contains(
			restarted, " 1") {
			t.Errorf("containers were restarted:\n%s", restarted)
		}
	})
}

// fetchInside requests a URL from a new pod, and returns the status of the response. The log has it also if the pod ends
// before kubectl could attach to it.
func (c *cluster) fetchInside(t *testing.T, url string) string {
	t.Helper()
	c.must(t, "run", "client", "--image", webImage, "--restart=Never", "--command", "--", "sh", "-c",
		"curl -sS --max-time 20 -o /dev/null -w '%{http_code}' "+url+" 2>/dev/null; true")
	c.await(t, "client", "jsonpath={.status.phase}=Succeeded")
	defer c.must(t, "delete", "pod", "client", "--now")
	return c.must(t, "logs", "client")
}
