//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const objectsPod = `apiVersion: v1
kind: Pod
metadata: {name: greeter}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: c, mountPath: /c}]
  volumes: [{name: c, configMap: {name: settings}}]
`

const objectsSettings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {greeting: hello}\n"

// testObjects: a pod uses a ConfigMap that was applied separately. A change of the ConfigMap updates the volume and
// restarts nothing.
func testObjects(t *testing.T, m *machine) {
	pod := write(t, objectsPod)
	held := m.run(t, "apply", pod)
	const missing = "ConfigMap default/settings, which volume c names, is missing: apply a file that has it"
	if held.code != 3 || !strings.Contains(held.stdout, missing) {
		t.Errorf("without the ConfigMap: exit code %d\n%s%s", held.code, held.stdout, held.stderr)
	}
	if r := m.must(t, "apply", write(t, objectsSettings)); !strings.Contains(r.stdout, "configmap default/settings created\n") {
		t.Error(r.stdout)
	}
	m.must(t, "apply", "--wait=started", "--timeout", "1m", pod)
	id := m.must(t, "get", "greeter", "-o", "jsonpath={.status.containerStatuses[0].containerID}").stdout
	wantFile := func(want string) {
		t.Helper()
		to := filepath.Join(t.TempDir(), "greeting")
		m.must(t, "cp", "greeter:/c/greeting", to)
		if text, err := os.ReadFile(to); err != nil || string(text) != want {
			t.Errorf("the volume has %q, want %q (%v)", text, want, err)
		}
	}
	wantFile("hello")

	changed := write(t, strings.Replace(objectsSettings, "hello", "good day", 1))
	planned := m.must(t, "plan", changed).stdout
	for _, want := range []string{
		"configmap default/settings would be configured: data.greeting", "Pod default/greeter",
		"volume c  update in place",
	} {
		if !strings.Contains(planned, want) {
			t.Errorf("no %q in\n%s", want, planned)
		}
	}
	wantFile("hello")
	m.must(t, "apply", changed)
	if r := m.run(t, "plan", "--exit-code", "greeter"); r.code != 2 ||
		!strings.Contains(r.stdout, "volume c  update in place") {
		t.Errorf("after the change: exit code %d\n%s", r.code, r.stdout)
	}
	began := time.Now()
	m.must(t, "apply", "greeter")
	wantFile("good day")
	now := m.must(t, "get", "greeter", "-o", "jsonpath={.status.containerStatuses[0].containerID}").stdout
	if now != id {
		t.Errorf("the container was replaced after %s: %s, before %s", time.Since(began), now, id)
	}
	deleted := m.must(t, "delete", "configmap/settings")
	if !strings.Contains(deleted.stdout, "configmap default/settings deleted\n") ||
		!strings.Contains(deleted.stderr, "is used by pod default/greeter") {
		t.Errorf("%s%s", deleted.stdout, deleted.stderr)
	}
	if r := m.must(t, "plan", "greeter"); !strings.Contains(r.stdout+r.stderr, "is missing") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	m.must(t, "delete", "greeter")
}
