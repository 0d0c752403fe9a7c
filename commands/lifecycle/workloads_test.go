package lifecycle_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// deployment is a Deployment of an image.
func deployment(replicas int, image, more string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: %d
%s  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: a, image: '%s'}]
`, replicas, more, image)
}

// written is the path of a manifest.
func written(l *lab, name, text string) string {
	path := l.Path(name + ".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.T().Fatal(err)
	}
	return path
}

// TestDeploymentFromPlanToDelete: what plan shows, apply does; a second one changes nothing; scale and delete take the pods
// away.
func TestDeploymentFromPlanToDelete(t *testing.T) {
	l := newLab(t)
	file := written(l, "web", deployment(2, "i:1", ""))
	stdout, _ := l.Must("plan", file)
	for _, want := range []string{"Deployment default/web · would be created\n", "Pod default/web-0 ·", "Pod default/web-1 ·", "deployment default/web: Pods: 2 to create.\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("plan: want %q:\n%s", want, stdout)
		}
	}
	if stdout, _ := l.Must("apply", "--wait", file); !strings.HasPrefix(stdout, "deployment default/web created\n") || !strings.HasSuffix(stdout, "deployment default/web: 2 of 2 pods available\n") {
		t.Errorf("apply: %s", stdout)
	}
	if stdout, _ := l.Must("plan", "--exit-code", file); stdout != "Deployment default/web · is unchanged\n\ndeployment default/web: Pods: 2 unchanged.\n" {
		t.Errorf("plan afterwards: %q", stdout)
	}
	if stdout, _ := l.Must("get", "deploy"); !strings.Contains(stdout, "web") || !strings.Contains(stdout, "2/2") {
		t.Errorf("get: %s", stdout)
	}
	l.Must("scale", "--replicas=1", "deployment/web", "--wait")
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "pod/web-0\n" {
		t.Errorf("after scale: %s", stdout)
	}
	if stdout, _ := l.Must("delete", "deployment/web"); !strings.Contains(stdout, "deployment default/web deleted") {
		t.Errorf("delete: %s", stdout)
	}
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "" {
		t.Errorf("after delete: %s", stdout)
	}
	if code, _, stderr := l.Call("delete", "deployment/web"); code != exit.Error || !strings.Contains(stderr, "no deployment default/web is stored here") {
		t.Errorf("a second delete: %d %s", code, stderr)
	}
}
