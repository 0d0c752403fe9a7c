package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// testDrain drains the node, and lets pods back.
func (c *cluster) testDrain(t *testing.T) {
	c = c.in(t, "drain")
	c.apply(t, "drain.yaml")
	c.rollout(t, "deployment/web")
	c.ready(t, "bare")
	c.must(t, "cordon", nodeName)
	c.must(t, "run", "later", "--image", webImage)
	c.prove(t, "Unschedulable", "get", "pod", "later", "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].reason}`)
	c.fails(t, 1, "cannot delete Pods that declare no controller", "drain", nodeName, "--ignore-daemonsets")
	flags := []string{"drain", nodeName, "--ignore-daemonsets", "--delete-emptydir-data", "--force"}
	// The budget lets one pod go. No other node can take it.
	c.fails(t, 1, "violate the pod's disruption budget", append(flags, "--timeout", "15s")...)
	until(t, func() string {
		if got := c.must(t, "get", "pods", "--field-selector", "spec.nodeName="+nodeName, "-o", "name"); strings.Count(got, "\n") != 1 {
			return "pods on the node: " + got
		}
		return ""
	})
	c.must(t, "delete", "poddisruptionbudget", "web")
	c.must(t, append(flags, "--timeout", patience.String())...)
	c.prints(t, "", "get", "pods", "--field-selector", "spec.nodeName="+nodeName, "-o", "name")
	c.must(t, "uncordon", nodeName)
	c.rollout(t, "deployment/web")
	c.ready(t, "later")
}

// testOutage stops the API server for a while. All pods continue, and what changes after that takes effect.
func (c *cluster) testOutage(t *testing.T) {
	c = c.in(t, "outage")
	c.workload(t, "Deployment", "web")
	c.rollout(t, "deployment/web")
	pods := c.values(t, "app=web", ".metadata.uid")
	before := c.node.records(t).live()
	checkClients := c.clientsOfOutage(t)
	c.server.end(t)
	checkClients()
	c.agent.end(t)
	c.startAgent(t) // without an API server
	c.startAPIServer(t)
	c.rollout(t, "deployment/web")
	c.must(t, "scale", "deployment/web", "--replicas=3")
	c.rollout(t, "deployment/web")
	after := c.node.records(t)
	for id, what := range before {
		if after[id] != what {
			t.Errorf("%s %.12s: now %q", what, id, after[id])
		}
	}
	for _, uid := range pods {
		if now := c.values(t, "app=web", ".metadata.uid"); !strings.Contains(strings.Join(now, " "), uid) {
			t.Errorf("pod %s is gone: %v", uid, now)
		}
	}
}

// testNodeDeleted deletes the Node. As with a kubelet, it returns when the agent starts again, and the pods of the
// deleted Node end.
func (c *cluster) testNodeDeleted(t *testing.T) {
	c = c.in(t, "node")
	c.apply(t, "drain.yaml")
	c.rollout(t, "deployment/web")
	uid := c.must(t, "get", "node", nodeName, "-o", "jsonpath={.metadata.uid}")
	before := c.values(t, "app=web", ".metadata.uid")
	c.must(t, "delete", "node", nodeName)
	c.must(t, "wait", "pod", "bare", "--for=delete", "--timeout", patience.String())
	c.agent.end(t)
	c.startAgent(t)
	until(t, func() string {
		c.agent.alive(t)
		r := c.call(t, "", "get", "node", nodeName, "-o",
			`jsonpath={.metadata.uid} {.status.conditions[?(@.type=="Ready")].status}`)
		if now, ready, _ := strings.Cut(r.stdout, " "); now == "" || now == uid || ready != "True" {
			return fmt.Sprintf("the node is not back: %s%s", r.stdout, r.stderr)
		}
		return ""
	})
	for _, workload := range []string{"daemonset/network", "daemonset/kube-proxy", "deployment/coredns"} {
		c.rollout(t, "-n", "kube-system", workload)
	}
	c.rollout(t, "deployment/web")
	for _, pod := range c.values(t, "app=web", ".metadata.uid") {
		if slices.Contains(before, pod) {
			t.Errorf("pod %s of the deleted node is still there", pod)
		}
	}
	until(t, func() string {
		for _, what := range c.node.records(t) {
			if strings.HasPrefix(what, "node/bare") {
				return "left: " + what
			}
		}
		return ""
	})
}
