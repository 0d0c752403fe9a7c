package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

const withService = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: 'i:1', ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`

// TestServices checks that a Service is applied, shown, named in place of its pods, and deleted like other objects. The
// end-to-end tests check the rules of the kernel.
func TestServices(t *testing.T) {
	l := newLab(t)
	file := written(l, "web", withService)
	if out, _ := l.Must("plan", file); !strings.Contains(out, "service default/web would be created") {
		t.Error(out)
	}
	if out, notes := l.Must("apply", "--wait", file); !strings.Contains(out, "service default/web created") ||
		strings.Contains(notes, "Service") {
		t.Errorf("%s%s", out, notes)
	}
	if out, _ := l.Must("get", "svc", "-o", "wide"); !strings.Contains(out, "ClusterIP   10.96.") ||
		!strings.Contains(out, "80/TCP") || !strings.Contains(out, "web-0,web-1") {
		t.Error(out)
	}
	if out, _ := l.Must("get", "service/web", "-o", "jsonpath={.spec.ports[0].targetPort}"); out != "http" {
		t.Error(out)
	}
	_, _, stderr := l.Call("port-forward", "service/web", "81")
	if !strings.Contains(stderr, "service default/web has no port 81 that leads to pod web-0") {
		t.Error(stderr)
	}
	if code, _, stderr := l.Call("port-forward", "service/db", "80"); code == exit.OK ||
		!strings.Contains(stderr, "no service default/db is stored here") {
		t.Error(stderr)
	}
	if code, out, stderr := l.Call("apply", "--exit-code", file); code != exit.OK ||
		!strings.Contains(out, "service default/web unchanged") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	edited := written(l, "edited", strings.Replace(withService, "port: 80,", "port: 81,", 1))
	if out, _ := l.Must("plan", edited); !strings.Contains(out, "service default/web would be configured: spec.ports") {
		t.Error(out)
	}
	l.Must("delete", "service/web")
	if _, notes := l.Must("get", "services"); !strings.Contains(notes, "No services") {
		t.Error(notes)
	}
}

// TestServicesFindEachOther checks that a new pod finds the names of Services in its hosts file, and that a running pod
// gets the names of later Services.
func TestServicesFindEachOther(t *testing.T) {
	l := newLab(t)
	l.Must("apply", "--wait", written(l, "web", withService))
	l.Must("apply", written(l, "late",
		strings.ReplaceAll(withService[strings.Index(withService, "---"):], "name: web", "name: late")))
	hosts, err := os.ReadFile(podFile(t, l, "web-0", "etc-hosts"))
	if err != nil || !strings.Contains(string(hosts), "\tweb.default\tweb\n") ||
		!strings.Contains(string(hosts), "\tlate.default\tlate\n") {
		t.Errorf("%s %v", hosts, err)
	}
}

// TestPrunedServicesLoseTheirNames checks that running pods no longer find a Service after apply --prune has deleted
// it.
func TestPrunedServicesLoseTheirNames(t *testing.T) {
	l := newLab(t)
	deployment, _, _ := strings.Cut(withService, "---")
	l.Must("apply", "--wait", "--prune", "--set", "shop", written(l, "both", withService))
	l.Must("apply", "--prune", "--set", "shop", written(l, "one", deployment))
	hosts, err := os.ReadFile(podFile(t, l, "web-0", "etc-hosts"))
	if err != nil || strings.Contains(string(hosts), "web.default") {
		t.Errorf("%s %v", hosts, err)
	}
}

// podFile returns the content of a file of a running pod.
func podFile(t *testing.T, l *lab, pod, name string) string {
	t.Helper()
	uid, _ := l.Must("get", pod, "-o", "jsonpath={.metadata.uid}")
	return filepath.Join(l.Path("state"), "pods", uid, name)
}

// TestServicesThatAreRefused checks that no part of a manifest with a refused Service is applied.
func TestServicesThatAreRefused(t *testing.T) {
	l := newLab(t)
	for edit, want := range map[string]string{
		"{selector: {app: web}, clusterIP: 8.8.8.8":     "spec.clusterIPs[0]: 8.8.8.8 is not one of",
		"{selector: {app: web}, externalIPs: [8.8.8.8]": "accepts traffic only on the node's own addresses",
	} {
		code, out, stderr := l.Call("apply",
			written(l, "bad", strings.Replace(withService, "{selector: {app: web}", edit, 1)))
		if code != exit.Refused || !strings.Contains(stderr, want) {
			t.Errorf("%d %s%s", code, out, stderr)
		}
		if out, _ := l.Must("get", "pods,services", "-o", "name"); out != "" {
			t.Errorf("applied: %s", out)
		}
	}
}
