//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// testAgentWorkloads: after one apply, the agent rolls out an edit, recreates a deleted pod, scales, completes a Job
// despite being killed, and forgets deleted workloads.
func testAgentWorkloads(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir())
	m.must(t, "apply", write(t, shop("one")))
	m.must(t, "wait", "--timeout", "1m", "deployment/shop")
	first := m.ids(t, "shop-2")
	m.must(t, "apply", write(t, shop("two")))
	rolled := func() bool { return m.run(t, "rollout", "status", "deployment/shop").code == 0 }
	waitFor(t, rolled)
	if m.ids(t, "shop-2")["app"] == first["app"] {
		t.Error("the last pod has not been updated")
	}
	if r := m.must(t, "delete", "shop-1"); !strings.Contains(r.stderr, "recreates pod default/shop-1") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	waitFor(t, rolled)

	m.must(t, "scale", "--replicas=1", "deployment/shop")
	waitFor(t, func() bool { return m.must(t, "get", "-o", "name").stdout == "pod/shop-0\n" })
	a.kill(t)
	m.must(t, "apply", write(t, batch))
	a = startAgent(t, m, a.dir)
	waitFor(t, func() bool { return m.run(t, "rollout", "status", "job/sums").code == 0 })
	if r := m.must(t, "get", "job/sums", "-o", "jsonpath={.status.succeeded}"); r.stdout != "3" {
		t.Errorf("%s of 3 tries have succeeded", r.stdout)
	}
	m.must(t, "delete", "deployment/shop", "job/sums")
	waitFor(t, func() bool { return m.must(t, "get", "-A", "-o", "name").stdout == "" })
	a.stop(t)
	if r := m.must(t, "get", "-A", "-o", "name"); r.stdout != "" {
		t.Errorf("left: %s", r.stdout)
	}
}
