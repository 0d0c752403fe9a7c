//go:build e2e

package e2e

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const eventful = `apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {value: hush-hush-1234}
---
apiVersion: v1
kind: Pod
metadata: {name: eventful}
spec:
  terminationGracePeriodSeconds: 1
  initContainers: [{name: seed, image: "registry.local/podctl/demo:1", args: [exit, --after, 300ms, "0"]}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: value}}}]
    livenessProbe: {exec: {command: [/demo, check, file, /hush-hush-1234]}}
  - {name: crash, image: "registry.local/podctl/demo:1", args: [exit, "3"]}
  - {name: absent, image: "registry.local/absent:1", imagePullPolicy: Never}
`

// testEvents: events have the form of a kubelet's, are counted, remain after the deletion of the pod, and contain no
// secrets.
func testEvents(t *testing.T, m *machine) {
	manifest := write(t, eventful)
	// The container must crash twice before it is held.
	for i := 0; i < 4 || (i < 20 && !strings.Contains(m.must(t, "events", "eventful").stdout, "BackOff")); i++ {
		m.run(t, "apply", "--wait=started", "--timeout", "2s", manifest)
	}
	m.run(t, "probe", "eventful")
	events := m.must(t, "events", "eventful").stdout
	for _, want := range []string{
		"SandboxCreated", "Started    pod/eventful seed", "BackOff", "ErrImageNeverPull", "Unhealthy", "(x",
		"Back-off restarting failed container crash in pod eventful_default(",
	} {
		if !strings.Contains(squeezed(events), squeezed(want)) {
			t.Errorf("%q is missing in\n%s", want, events)
		}
	}
	describe := m.must(t, "describe", "eventful").stdout
	for _, want := range []string{
		"CrashLoopBackOff", "<key value of Secret token>", "Next apply:", "Unhealthy", "exec [/demo check file",
	} {
		if !strings.Contains(describe, want) {
			t.Errorf("%q is missing in\n%s", want, describe)
		}
	}
	why := m.must(t, "why", "eventful").stdout
	for _, want := range []string{
		"crash: Waiting", "CrashLoopBackOff: back-off", "ErrImageNeverPull", "restart (attempt", "Exited: exited 3", "Unhealthy",
		"next pass: podctl apply makes it",
	} {
		if !strings.Contains(why, want) {
			t.Errorf("%q is missing in\n%s", want, why)
		}
	}
	if strings.Contains(events+why, "hush-hush") {
		t.Errorf("a secret is in\n%s", events)
	}
	timeline := m.must(t, "describe", "--timeline", "eventful").stdout
	for _, want := range []string{"sandbox", "start seed", "run seed", "ready crash", "█"} {
		if !strings.Contains(timeline, want) {
			t.Errorf("%q is missing in\n%s", want, timeline)
		}
	}
	picture := xml.NewDecoder(strings.NewReader(m.must(t, "describe", "--timeline", "-o", "svg", "eventful").stdout))
	for {
		if _, err := picture.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	m.must(t, "delete", "eventful")
	if r := m.must(t, "events", "eventful"); !strings.Contains(r.stdout, "Killing") {
		t.Errorf("events of a deleted pod:\n%s", r.stdout)
	}
}

// squeezed replaces runs of blanks by one blank, so that tables can be compared.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }
