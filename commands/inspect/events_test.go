package inspect_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// TestEventsOfWorkloads: the events of a workload are the events of its pods, including deleted pods.
func TestEventsOfWorkloads(t *testing.T) {
	l := newLab(t)
	path := l.Path("shop.yaml")
	if err := os.WriteFile(path, []byte(shop), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Must("apply", "--wait", path, l.Write("web-9", "  containers: [{name: a, image: 'i:1'}]\n"))
	objects := func(args ...string) string {
		out, _ := l.Must(append([]string{"events"}, args...)...)
		var names []string
		for line := range strings.Lines(out) {
			for word := range strings.FieldsSeq(line) {
				if strings.HasPrefix(word, "pod/") && (len(names) == 0 || names[len(names)-1] != word) {
					names = append(names, word)
				}
			}
		}
		return strings.Join(names, " ")
	}
	for _, args := range []string{"deployment/web", "deploy web", "deployments"} {
		if got := objects(strings.Fields(args)...); got != "pod/web-0" {
			t.Errorf("events %s: %s", args, got)
		}
	}
	if got := objects("deploy/web", "web-9"); !strings.Contains(got, "pod/web-0") ||
		!strings.Contains(got, "pod/web-9") {
		t.Error(got)
	}
	l.Must("delete", "deployment/web")
	if got := objects("deployment/web"); got != "pod/web-0" {
		t.Errorf("after its deletion: %q", got)
	}
	for args, want := range map[string]string{
		"deployment/absent": "no deployment default/absent is stored here",
		"svc/web":           "name pods or workloads",
		"configmaps":        "name pods or workloads",
	} {
		if code, _, stderr := l.Call(append([]string{"events"}, args)...); code != exit.Error ||
			!strings.Contains(stderr, want) {
			t.Errorf("events %s: %d %s", args, code, stderr)
		}
	}
}
