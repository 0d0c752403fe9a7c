package podspec_test

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/podspec/podspectest"
)

func TestUnresolved(t *testing.T) {
	m := load.Parse(input.Source{Name: "-", Text: []byte(strings.NewReplacer(
		"name: settings, key: mode", "name: settings, key: absent", "name: login, key", "name: absent, key").Replace(podspectest.WithEnv))})
	if m.Err() != nil {
		t.Fatalf("an unresolved reference is accepted: %v", m.Err())
	}
	var details []string
	for _, r := range m.Pods[0].Unresolved() {
		details = append(details, r.Container+": "+r.Detail)
	}
	want := `app: ConfigMap default/settings has no key "absent"; ` +
		`app: Secret default/absent is missing: apply a file that has it, or add it with --configmap FILE`
	if got := strings.Join(details, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(m.Problems) != 2 || m.Problems[0].Class != document.ClassUnresolved || m.Problems[0].Line == 0 {
		t.Errorf("problems %v", m.Problems)
	}
}

// TestBinaryDataIsNotAVariable checks that a key only in binaryData can be a file, but not a variable.
func TestBinaryDataIsNotAVariable(t *testing.T) {
	const text = podspectest.Minimal + `    env:
    - {name: A, valueFrom: {configMapKeyRef: {name: c, key: blob}}}
    - {name: B, valueFrom: {configMapKeyRef: {name: c, key: blob, optional: true}}}
    volumeMounts: [{name: v, mountPath: /v}]
  volumes:
  - {name: v, configMap: {name: c, items: [{key: blob, path: blob}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
binaryData: {blob: aGVsbG8=}
`
	missing := podspectest.Desired(t, text).Unresolved()
	want := `ConfigMap default/c has no key "blob" in its data; binaryData is for volumes only`
	if len(missing) != 1 || missing[0].Container != "app" || missing[0].Detail != want {
		t.Errorf("missing %+v, want the first variable: %s", missing, want)
	}
}
