package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// TestDescribeDocument: the document has the same content as the text.
func TestDescribeDocument(t *testing.T) {
	l := newLab(t)
	l.Must("apply",
		l.Write("web",
			"  containers: [{name: a, image: 'i:1', readinessProbe: {exec: {command: [x]}, periodSeconds: 7}}]\n"),
		l.Write("other", "  containers: [{name: a, image: 'i:1'}]\n"))
	l.Call("probe", "web")
	stdout, _ := l.Must("describe", "-o", "json", "web")
	var doc struct {
		Kind, Source string
		Pod          struct{ Name, UID string }
		Spec         struct{ Containers []struct{ Name string } }
		Status       struct{ Phase string }
		Probes       []struct{ Container, Type, Probe, Result string }
		Events       []struct{ Reason string }
		NextApply    struct{ Summary string }
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Kind != "PodDescription" || doc.Pod.Name != "web" || doc.Source != l.Path("web.yaml") ||
		doc.Status.Phase != "Running" || doc.Spec.Containers[0].Name != "a" {
		t.Errorf("%s", stdout)
	}
	if p := doc.Probes; len(p) != 1 || p[0].Container != "a" || p[0].Type != "readiness" ||
		!strings.Contains(p[0].Probe, "period=7s") || p[0].Result == "" {
		t.Errorf("%+v", p)
	}
	if len(doc.Events) == 0 || doc.Events[0].Reason == "" || doc.NextApply.Summary == "" {
		t.Errorf("%s", stdout)
	}
	stdout, _ = l.Must("describe", "-o", "yaml", "--all")
	if !strings.Contains(stdout, "kind: PodDescriptionList\n") || strings.Count(stdout, "kind: PodDescription\n") != 2 {
		t.Errorf("%s", stdout)
	}
	if code, _, stderr := l.Call("describe", "-o", "json", "--timeline", "web"); code != exit.Error ||
		!strings.Contains(stderr, "--timeline takes") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
