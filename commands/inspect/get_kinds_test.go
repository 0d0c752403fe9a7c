package inspect_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

const shop = `apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "i:1"}]}
`

// TestGetSeveralKinds: like kubectl, get accepts all, a list of kinds, and names with kinds. It prints a table for each
// kind that has objects, or one document.
func TestGetSeveralKinds(t *testing.T) {
	l := newLab(t)
	if out, note := l.Must("get", "all"); out != "" || note != "No resources found in namespace default.\n" {
		t.Errorf("of nothing: %q %q", out, note)
	}
	path := l.Path("shop.yaml")
	if err := os.WriteFile(path, []byte(shop), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Must("apply", path)
	for args, want := range map[string][]string{
		"all": {
			"web-0   1/1", "\n\nNAME   TYPE        CLUSTER-IP", "\n\nNAME   READY   UP-TO-DATE",
		},
		"jobs,deploy,svc":                             {"UP-TO-DATE", "\n\nNAME   TYPE"},
		"deploy/web svc/web pod/web-0":                {"UP-TO-DATE", "CLUSTER-IP", "web-0"},
		"all -o name":                                 {"pod/web-0\nservice/web\ndeployment/web\n"},
		"deploy,svc web -o name":                      {"deployment/web\nservice/web\n"},
		"services,endpoints":                          {"CLUSTER-IP", "ENDPOINTS"},
		"ep/web svc/web":                              {"CLUSTER-IP", "ENDPOINTS"},
		"all -l app=web -o jsonpath={.items[*].kind}": {"Pod Service Deployment"},
		"deploy/web svc/web -o json":                  {`"kind": "List"`, `"kind": "Deployment"`, `"kind": "Service"`},
		"all -A --no-headers":                         {"default   web-0"},
	} {
		out, note := l.Must(append([]string{"get"}, strings.Fields(args)...)...)
		for _, part := range want {
			if !strings.Contains(out, part) || note != "" || strings.HasPrefix(out, "\n") {
				t.Errorf("get %s: no %q in\n%s%s", args, part, out, note)
			}
		}
	}
	if code, out, note := l.Call("get", "deploy/web", "svc/absent"); code != exit.Error ||
		!strings.Contains(out, "UP-TO-DATE") || !strings.Contains(note, "absent") {
		t.Errorf("a missing object: %d %q %q", code, out, note)
	}
}

// TestDescribeAWorkload: a workload is printed before its pods.
func TestDescribeAWorkload(t *testing.T) {
	l := newLab(t)
	path := l.Path("shop.yaml")
	if err := os.WriteFile(path, []byte(shop), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Must("apply", "--wait", path)
	out, _ := l.Must("describe", "deployment/web")
	for _, want := range []string{
		"Name:               web\n", "Kind:               Deployment\n", "Selector:           app=web\n",
		"Revision:           1\n",
		"Replicas:           1 desired | 1 updated | 1 total | 1 available\n",
		"Available:          True (MinimumReplicasAvailable)\n", "\n\nName:               web-0\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	l.Must("scale", "--replicas=0", "deployment/web", "--wait")
	if out, _ = l.Must("describe", "deployment/web"); !strings.Contains(out, "Replicas:           0 desired") {
		t.Errorf("without pods:\n%s", out)
	}
}
