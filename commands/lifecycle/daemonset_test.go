package lifecycle_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// TestDaemonSetOfOtherNodes checks that a DaemonSet has a pod only if the labels of the node match. Otherwise plan,
// apply, get and rollout status report that it has none.
func TestDaemonSetOfOtherNodes(t *testing.T) {
	l := newLab(t)
	text := strings.NewReplacer(
		"kind: Deployment", "kind: DaemonSet",
		"  replicas: 1\n", "",
		"      terminationGrace", "      nodeSelector: {kubernetes.io/os: linux, disk: ssd}\n      terminationGrace",
	).Replace(deployment(1, "i:1", ""))
	file := written(l, "web", text)
	const why = "o pod here: this node has no label disk=ssd (node-labels in the configuration sets its labels)"
	if stdout, _ := l.Must("plan", file); !strings.Contains(stdout, "daemonset default/web: N"+why+". Pods: none.") {
		t.Errorf("plan: %s", stdout)
	}
	if stdout, _ := l.Must("apply", "--wait", file); !strings.HasSuffix(stdout, "daemonset default/web: n"+why+"\n") {
		t.Errorf("apply: %s", stdout)
	}
	if stdout, stderr := l.Must("get", "ds"); !strings.Contains(stderr, "note: daemonset default/web: n"+why) ||
		!strings.Contains(stdout, "0         0         0") {
		t.Errorf("get: %s%s", stdout, stderr)
	}
	l.Must("apply", "--wait", "--node-labels", "disk=ssd", file)
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "pod/web-0\n" {
		t.Errorf("with the label: %s", stdout)
	}
	settings := l.Path("settings.yaml")
	if err := os.WriteFile(settings, []byte("node-labels: disk=ssd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _ := l.Must("rollout", "status", "ds/web", "--config", settings)
	if !strings.Contains(stdout, "1 of 1 pods available") {
		t.Errorf("with the label in the configuration: %s", stdout)
	}
	if code, stdout, _ := l.Call("rollout", "status", "ds/web"); code != exit.NotYet {
		t.Errorf("without it: %d %s", code, stdout)
	}
	l.Must("apply", "--wait", file)
	if stdout, _ := l.Must("get", "-o", "name"); stdout != "" {
		t.Errorf("without the label: %s", stdout)
	}
}
