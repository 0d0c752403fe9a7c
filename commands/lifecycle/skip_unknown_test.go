package lifecycle_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// chart is a Deployment with other objects that charts have.
const chart = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: small}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: List
items:
- {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: tls}}
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: small}}
---
`

// TestSkipUnknown checks that nothing is changed without the flag, and that the error names the flag. With it, the rest
// is planned, applied and deleted, and each skipped object is named once.
func TestSkipUnknown(t *testing.T) {
	l := newLab(t)
	path := l.Path("chart.yaml")
	if err := os.WriteFile(path, []byte(chart+deployment(1, "i:1", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"validate", "plan", "apply", "delete", "diff"} {
		code, stdout, stderr := l.Call(command, "-f", path)
		if want := exit.Refused; command != "diff" && code != want || code == exit.OK ||
			!strings.Contains(stdout+stderr, "--skip-unknown") || everything(l) != "" {
			t.Errorf("%s: %d\n%s%s", command, code, stdout, stderr)
		}
	}
	for _, command := range [][]string{
		{"validate"},
		{"plan"},
		{"diff"},
		{"apply"},
		{"apply", "-o", "json"},
		{"plan", "-o", "json"},
		{"delete", "--dry-run"},
		{"delete"},
	} {
		code, stdout, stderr := l.Call(append(command, "--skip-unknown", "-f", path)...)
		if code != exit.OK && command[0] != "diff" || code > 1 {
			t.Errorf("%v: %d\n%s%s", command, code, stdout, stderr)
		}
		for _, name := range []string{
			"CustomResourceDefinition/widgets.example.com", "Widget/small", "Certificate/tls", "ServiceAccount/web",
		} {
			out := stderr
			if command[0] == "validate" {
				out = stdout
			}
			if strings.Count(out, "skipped: "+name+" (") != 1 {
				t.Errorf("%v does not name %s once:\n%s", command, name, out)
			}
		}
		if len(command) == 3 && strings.Count(stdout, `"cert-manager.io/v1"`) != 1 {
			t.Errorf("%v: %s", command, stdout)
		}
	}
	if left := everything(l); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestOnlySkippedObjects checks that manifests without any usable object are refused unless the flag allows it.
func TestOnlySkippedObjects(t *testing.T) {
	l := newLab(t)
	path := l.Path("crd.yaml")
	if err := os.WriteFile(path, []byte(strings.Split(chart, "---")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := l.Call("apply", "-f", path); code != exit.Refused ||
		!strings.Contains(stderr, "--skip-unknown") {
		t.Errorf("%d %s", code, stderr)
	}
	l.Must("apply", "--skip-unknown", "-f", path)
	stdout, _ := l.Must("plan", "--skip-unknown", "-o", "json", "-f", path)
	var doc struct {
		Skipped []struct{ Kind, Name, Reason string }
		Items   []any
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || len(doc.Skipped) != 1 ||
		doc.Skipped[0].Name != "widgets.example.com" || doc.Items == nil {
		t.Errorf("%v %s", err, stdout)
	}
}
