package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const clusterFiles = "testdata/cluster"

// apply creates the objects of a file of testdata/cluster.
func (c *cluster) apply(t *testing.T, file string) {
	t.Helper()
	c.must(t, "apply", "-f", filepath.Join(clusterFiles, file))
}

// rollout waits until a workload has its newest pods.
func (c *cluster) rollout(t *testing.T, args ...string) {
	t.Helper()
	c.must(t, append([]string{"rollout", "status", "--timeout", patience.String()}, args...)...)
}

// prove waits until kubectl prints a text.
func (c *cluster) prove(t *testing.T, want string, args ...string) {
	t.Helper()
	until(t, func() string {
		if r := c.call(t, "", args...); r.stdout != want {
			return fmt.Sprintf("kubectl %s:\n%s%swant\n%s", strings.Join(args, " "), r.stdout, r.stderr, want)
		}
		return ""
	})
}

// testNetwork starts with a node without a network for pods. A DaemonSet brings the network, and then waiting pods start.
func (c *cluster) testNetwork(t *testing.T) {
	const condition = `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`
	c.prove(t, "KubeletNotReady", "get", "node", nodeName, "-o", condition)
	until(t, func() string { return c.call(t, "", "get", "serviceaccount", "default").stderr })
	early := overrides(1)
	c.must(t, "run", "early", "--image", webImage, "--overrides", early) // it is bound to the node
	c.must(t, "run", "scheduled", "--image", webImage)                   // the scheduler waits for the network
	until(t, func() string {
		if events := c.must(t, "events", "--for", "pod/early"); !strings.Contains(events, "NetworkNotReady") {
			return "no event NetworkNotReady: " + events
		}
		return ""
	})
	c.apply(t, "network.yaml")
	c.rollout(t, "-n", "kube-system", "daemonset/network")
	c.must(t, "wait", "node", nodeName, "--for", "condition=Ready", "--timeout", patience.String())
	c.ready(t, "early")
	c.ready(t, "scheduled")
	c.must(t, "delete", "pods", "early", "scheduled")

	name := c.must(t, "get", "pods", "-n", "kube-system", "-l", "app=network", "-o", "jsonpath={.items[0].metadata.name}")
	owner := fmt.Sprintf("%s %s %s\n", name, nodeName, nodeIP)
	if got := read(t, "/run/network/state/owner"); got != owner {
		t.Errorf("the node sees %q in the mount of the pod, want %q", got, owner)
	}
	observe := []string{"exec", "-n", "kube-system", name, "-c", "observer", "--", "cat", "/run/network/state/owner"}
	c.prints(t, owner, observe...)

	// The next pod finds the mount of the one before, whose hook has removed the file.
	c.must(t, "rollout", "restart", "-n", "kube-system", "daemonset/network")
	c.rollout(t, "-n", "kube-system", "daemonset/network")
	next := c.must(t, "get", "pods", "-n", "kube-system", "-l", "app=network", "-o", "jsonpath={.items[0].metadata.name}")
	if got := read(t, "/run/network/state/owner"); next == name || !strings.HasPrefix(got, next) {
		t.Errorf("pod %s after %s: the owner is %q", next, name, got)
	}
	if _, err := os.Stat(filepath.Join("/run/xtables.lock")); err != nil {
		t.Error(err)
	}
	c.apply(t, "proxy.yaml")
	c.rollout(t, "-n", "kube-system", "daemonset/kube-proxy")
}

// testNames starts the cluster DNS, and finds Services and pods by their names.
func (c *cluster) testNames(t *testing.T) {
	c.apply(t, "dns.yaml")
	c.rollout(t, "-n", "kube-system", "deployment/coredns")
	c = c.in(t, "names")
	c.apply(t, "services.yaml")
	c.rollout(t, "deployment/web")
	c.ready(t, "client")
	c.ready(t, "host")
	c.prints(t, "search names.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
		"exec", "client", "--", "cat", "/etc/resolv.conf")
	for _, name := range []string{"web", "web.names", "web.names.svc", "web.names.svc.cluster.local"} {
		until(t, func() string {
			r := c.call(t, "", "exec", "client", "--", "curl", "-sS", "--max-time", "10", "http://"+name+"/hostname")
			if !strings.HasPrefix(r.stdout, "web-") {
				return name + ": " + r.stdout + r.stderr
			}
			return ""
		})
	}
	c.fails(t, 6, "Could not resolve host", "exec", "host", "--", "curl", "-sS", "http://web/") // its DNS is that of the node
}

// testServices reaches Services by kube-proxy. podctl makes no rules for them.
func (c *cluster) testServices(t *testing.T) {
	c = c.in(t, "services")
	c.apply(t, "services.yaml")
	c.rollout(t, "deployment/web")
	ip := c.must(t, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	port := c.must(t, "get", "service", "nodes", "-o", "jsonpath={.spec.ports[0].nodePort}")
	pods := strings.Fields(c.must(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}"))
	c.ready(t, "client")
	c.ready(t, "host")
	for _, url := range []string{ip, nodeIP + ":" + port} {
		answers := map[string]bool{}
		until(t, func() string { // kube-proxy sees the pods later than their clients
			text, err := fetch(t.Context(), "http://"+url+"/hostname", "")
			if err != nil {
				return err.Error()
			}
			answers[string(text)] = true
			for _, pod := range pods {
				if !answers[pod] {
					return fmt.Sprintf("%s answers with %v, want %v", url, answers, pods)
				}
			}
			return ""
		})
	}
	for _, client := range []string{"client", "host"} {
		for _, url := range []string{"$WEB_SERVICE_HOST:$WEB_SERVICE_PORT", "$NODES_SERVICE_HOST:$NODES_PORT_80_TCP_PORT", nodeIP + ":" + port} {
			got := c.must(t, "exec", client, "--", "sh", "-c", "curl -sS --max-time 10 "+url+"/hostname")
			if !strings.HasPrefix(got, "web-") {
				t.Errorf("%s: %q from %s", client, got, url)
			}
		}
	}
	// The server that a Service leads to also reaches itself by that.
	got := c.must(t, "exec", "deployment/alone", "--", "sh", "-c", "curl -sS --max-time 10 $ALONE_SERVICE_HOST/hostname")
	if !strings.HasPrefix(got, "alone-") {
		t.Errorf("%q from the own Service", got)
	}
	c.must(t, "scale", "deployment/web", "--replicas=0")
	until(t, func() string {
		if text, err := fetch(t.Context(), "http://"+ip+"/hostname", ""); err == nil {
			return "a Service without pods answers: " + string(text)
		}
		return ""
	})
	for _, table := range tables(t) {
		if strings.Contains(table, "podctl") {
			t.Errorf("podctl has made the table %s", table)
		}
	}
}
