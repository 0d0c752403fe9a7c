package kubernetes

import (
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
)

// usage is used processor time in thousandths of a core, and memory in MiB.
type usage struct{ cpu, memory float64 }

// near reports whether other measurements of about the same time may differ like that.
func (u usage) near(other usage) bool {
	within := func(a, b, slack float64) bool { return a <= 2*b+slack && b <= 2*a+slack }
	return within(u.cpu, other.cpu, 50) && within(u.memory, other.memory, 8)
}

// testMetrics lets metrics-server read the node, and checks `kubectl top` with the node's own numbers. One container
// uses a fifth of a core, and one 64 MiB.
func (c *cluster) testMetrics(t *testing.T) {
	c.apply(t, "metrics.yaml")
	c.rollout(t, "-n", "kube-system", "deployment/metrics-server")
	const api = "apiservice/v1beta1.metrics.k8s.io"
	c.must(t, "wait", api, "--for", "condition=Available", "--timeout", patience.String())
	c = c.in(t, "metrics")
	c.apply(t, "load.yaml")
	c.ready(t, "load")
	until(t, func() string {
		shown, own := c.top(t, "top", "pod", "load", "--containers", "--no-headers"), c.summary(t)
		for _, name := range []string{"load/busy", "load/big"} {
			if !shown[name].near(own[name]) {
				return fmt.Sprintf("%s: kubectl top shows %v, the node %v", name, shown, own)
			}
		}
		busy, big := shown["load/busy"].cpu, shown["load/big"].memory
		if busy < 1 || busy > 250 || big < 64 || big > 80 {
			return fmt.Sprintf("kubectl top shows %v", shown)
		}
		t.Logf("kubectl top shows %v, the node %v", shown, own)
		return ""
	})
	until(t, func() string {
		shown, own := c.top(t, "top", "node", "--no-headers")[nodeName], c.summary(t)[nodeName]
		if !shown.near(own) || shown.cpu < 1 || shown.cpu > float64(1000*goruntime.NumCPU()) {
			return fmt.Sprintf("kubectl top shows %v, the node %v", shown, own)
		}
		t.Logf("kubectl top shows %v, the node %v", shown, own)
		return ""
	})
}

// top returns the usage that kubectl shows for containers as POD/CONTAINER, and for nodes. There is none before
// metrics-server has two measurements.
func (c *cluster) top(t *testing.T, args ...string) map[string]usage {
	t.Helper()
	all := map[string]usage{}
	for line := range strings.Lines(c.call(t, "", args...).stdout) {
		fields := strings.Fields(line)
		name, rest := fields[0], fields[1:]
		if args[1] == "pod" {
			name, rest = name+"/"+rest[0], rest[1:]
		}
		var u usage
		var err error
		for i, value := range []struct {
			to   *float64
			unit string
		}{{&u.cpu, "m"}, {&u.memory, "Mi"}} {
			column := i
			if args[1] == "node" {
				column = 2 * i // percentages are between
			}
			if *value.to, err = strconv.ParseFloat(strings.TrimSuffix(rest[column], value.unit), 64); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
		}
		all[name] = u
	}
	return all
}

// summary returns the usage in the node's /stats/summary for containers of the namespace, and for the node.
func (c *cluster) summary(t *testing.T) map[string]usage {
	t.Helper()
	type stats struct {
		Name   string
		CPU    struct{ UsageNanoCores float64 }
		Memory struct{ WorkingSetBytes float64 }
	}
	var s struct {
		Node stats
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Containers []stats
		}
	}
	text := c.must(t, "get", "--raw", "/api/v1/nodes/"+nodeName+"/proxy/stats/summary")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	of := func(s *stats) usage { return usage{s.CPU.UsageNanoCores / 1e6, s.Memory.WorkingSetBytes / (1 << 20)} }
	all := map[string]usage{nodeName: of(&s.Node)}
	for _, p := range s.Pods {
		for i := range p.Containers {
			if p.PodRef.Namespace == c.namespace {
				all[p.PodRef.Name+"/"+p.Containers[i].Name] = of(&p.Containers[i])
			}
		}
	}
	return all
}
