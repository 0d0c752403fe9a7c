//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// lonely returns a pod without a workload.
func lonely(name string) string {
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n" +
		"  terminationGracePeriodSeconds: 1\n" +
		"  containers: [{name: app, image: 'registry.local/podctl/demo:1', args: [sleep]}]\n"
}

// testSets: adding running pods to a set restarts nothing. Objects that are removed from the manifests are deleted as
// planned, and all others keep running.
func testSets(t *testing.T, m *machine) {
	site := write(t, shop("one")+lonely("other")+lonely("stays"))
	m.must(t, "apply", "--wait", "--timeout", "1m", site)
	m.must(t, "apply", write(t, lonely("foreign")))
	before := map[string]string{}
	for _, name := range []string{"shop-0", "other", "stays", "foreign"} {
		before[name] = m.ids(t, name)["app"]
	}
	m.must(t, "plan", "--exit-code", "--set", "site", site)
	m.must(t, "apply", "--set", "site", site)
	for name, id := range before {
		if m.ids(t, name)["app"] != id {
			t.Errorf("%s was restarted", name)
		}
	}
	less := write(t, lonely("stays"))
	r := m.must(t, "plan", "--prune", "--set", "site", less)
	for _, want := range []string{
		"deployment default/shop would be pruned\n", "pod default/shop-2 would be pruned\n",
		"pod default/other would be pruned\n",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("want %q:\n%s", want, r.stdout)
		}
	}
	m.must(t, "apply", "--prune", "--set", "site", less)
	if r := m.must(t, "get", "-o", "name"); r.stdout != "pod/foreign\npod/stays\n" {
		t.Errorf("left: %s", r.stdout)
	}
	for _, name := range []string{"stays", "foreign"} {
		if m.ids(t, name)["app"] != before[name] {
			t.Errorf("%s was restarted", name)
		}
	}
	m.must(t, "apply", "--prune", "--set", "site", write(t, "apiVersion: v1\nkind: List\nitems: []\n"))
	m.must(t, "delete", "foreign")
	if r := m.must(t, "get", "-A", "-o", "name"); r.stdout != "" {
		t.Errorf("left: %s", r.stdout)
	}
}
