//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	goruntime "runtime"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// drainingPod ends with success some time after a signal.
const drainingPod = `apiVersion: v1
kind: Pod
metadata: {name: draining}
spec:
  restartPolicy: Never
  containers:
  - {name: app, image: "registry.local/podctl/demo:1", args: [serve, --drain, 3s]}
`

// testAgentAfterRestarts: pods keep their containers and addresses when the runtime or the agent restarts. Ended pods
// occupy no resources, and deletions continue. The cases are those of the kubelet's test/e2e_node/restart_test.go:
//
//   - "Network should recover from ip leak": the runtime is killed several times
//   - "should correctly account for terminated pods after restart": pods that request all CPU have ended before the
//     agent is killed
//   - "should delete pods which are marked as terminal and have a deletion timestamp set after restart": the pod
//     draining
//   - "should force-delete non-admissible pods that was admitted and running before kubelet restart": the pod labelled
//
// "should force-delete non-admissible pods created and deleted during kubelet restart" does not apply, because a
// manifest that exists only while no agent runs leaves no trace.
func testAgentAfterRestarts(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir(), "--node-labels", "role=test")
	most := 600 * goruntime.NumCPU()
	ended := strings.Replace(fmt.Sprintf(sizedPod, "ended", most), "args: [log, --forever, --every, 1s]",
		`args: [exit, "0"]`, 1)
	a.put(t, "ended.yaml", strings.Replace(ended, "spec:\n", "spec:\n  restartPolicy: Never\n", 1))
	a.put(t, "draining.yaml", drainingPod)
	a.put(t, "labelled.yaml", strings.Replace(fmt.Sprintf(simplePod, "labelled", "1s"), "spec:\n",
		"spec:\n  nodeSelector: {role: test}\n", 1))
	names := []string{"one", "two", "three", "labelled", "draining", "large"}
	for _, name := range names[:3] {
		a.put(t, name+".yaml", fmt.Sprintf(simplePod, name, "1s"))
	}
	until(t, "the agent reports that a pod has ended",
		func() bool { return strings.Contains(a.log.String(), "the pod has finished: Succeeded") })
	a.put(t, "large.yaml", fmt.Sprintf(sizedPod, "large", most))
	for _, name := range names {
		until(t, name+" runs", func() bool { return m.isReady(t, name) })
	}
	containers, addresses := m.lives(t, names)
	for range 3 {
		restartContainerd(t, m)
		until(t, "the runtime answers the agent", func() bool { return a.status(t).Runtime.Answers })
	}
	m.wantLives(t, "the runtime was killed", names, containers, addresses)

	a.remove(t, "draining.yaml")
	until(t, "draining is being deleted", func() bool { return a.isDeleting(t, "draining") })
	until(t, "draining has its signal",
		func() bool { return strings.Contains(m.run(t, "logs", "draining").stdout, "got a signal") })
	a.kill(t)
	a.remove(t, "labelled.yaml")
	until(t, "draining has ended by itself", func() bool { return !m.runs(t, containers["draining"]["app"]) })
	a = startAgent(t, m, a.dir) // It has no labels.
	until(t, "draining is gone", func() bool { return m.isGone(t, "draining") })
	until(t, "labelled is gone", func() bool { return m.isGone(t, "labelled") })
	left := []string{"one", "two", "three", "large"}
	m.wantLives(t, "the agent was killed", left, containers, addresses)
	a.put(t, "small.yaml", fmt.Sprintf(sizedPod, "small", 100))
	until(t, "a small pod is admitted", func() bool { return m.isReady(t, "small") })
	if s := m.statusOf(t, "ended"); s.Phase != v1.PodSucceeded {
		t.Errorf("the pod that had ended: %+v", s)
	}
	a.stop(t)
	m.must(t, append([]string{"delete", "ended", "small"}, left...)...)
}

// lives returns the container IDs and the addresses of pods.
func (m *machine) lives(
	t *testing.T, names []string,
) (containers map[string]map[string]string, addresses map[string]string) {
	t.Helper()
	containers, addresses = map[string]map[string]string{}, map[string]string{}
	for _, name := range names {
		containers[name], addresses[name] = m.ids(t, name), m.statusOf(t, name).PodIP
	}
	return containers, addresses
}

// wantLives checks that pods are ready and have the same containers and addresses as before.
func (m *machine) wantLives(
	t *testing.T, when string, names []string, containers map[string]map[string]string, addresses map[string]string,
) {
	t.Helper()
	of := map[string]string{}
	for _, name := range names {
		until(t, name+" is ready", func() bool { return m.isReady(t, name) })
		s := m.statusOf(t, name)
		if now := m.ids(t, name); !maps.Equal(now, containers[name]) || s.PodIP != addresses[name] ||
			s.ContainerStatuses[0].RestartCount != 0 {
			text, _ := json.Marshal(s) // a status is always valid
			t.Errorf("%s: %s has %v, before %v: %s", when, name, now, containers[name], text)
		}
		if other := of[s.PodIP]; other != "" {
			t.Errorf("%s: %s and %s have the address %s", when, name, other, s.PodIP)
		}
		of[s.PodIP] = name
	}
}
