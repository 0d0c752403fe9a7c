//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const sizedPod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [log, --forever, --every, 1s]
    resources: {requests: {cpu: %dm}}
`

// statusOf returns the status of a pod. It is empty if the pod does not exist.
func (m *machine) statusOf(t *testing.T, name string) v1.PodStatus {
	t.Helper()
	var pod v1.Pod
	if r := m.run(t, "get", "-o", "json", name); r.code == 0 {
		if err := json.Unmarshal([]byte(r.stdout), &pod); err != nil {
			t.Fatal(err)
		}
	}
	return pod.Status
}

// testAgentAdmission: if two pods together request more CPU than the machine has, the first by name runs and the other
// fails. With a smaller request, it runs. A restarted agent changes nothing. (Kubelet, e2e_node: a pod that does not
// fit is rejected with OutOfcpu.)
func testAgentAdmission(t *testing.T, m *machine) {
	most := 600 * goruntime.NumCPU()
	a := startAgent(t, m, t.TempDir())
	a.put(t, "pods.yaml", fmt.Sprintf(sizedPod, "fits", most)+"---\n"+fmt.Sprintf(sizedPod, "late", most))
	until(t, "fits runs", func() bool { return m.isReady(t, "fits") })
	until(t, "late has failed", func() bool { return m.statusOf(t, "late").Phase == v1.PodFailed })
	message := fmt.Sprintf("Node didn't have enough resource: cpu, requested: %d, used: ", most)
	if s := m.statusOf(t, "late"); s.Reason != "OutOfcpu" ||
		!strings.HasPrefix(s.Message, "Pod was rejected: "+message) || len(s.ContainerStatuses) > 0 {
		t.Errorf("the status is %+v", s)
	}
	for _, args := range [][]string{{"get", "late"}, {"describe", "late"}, {"events", "late"}, {"agent", "status"}} {
		if r := m.must(t, args...); !strings.Contains(r.stdout, "OutOfcpu") {
			t.Errorf("podctl %s:\n%s", strings.Join(args, " "), r.stdout)
		}
	}
	if n := strings.Count(a.log.String(), `msg="pod rejected"`); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	third := filepath.Join(t.TempDir(), "third.yaml")
	if err := os.WriteFile(third, fmt.Appendf(nil, sizedPod, "third", most), 0o600); err != nil {
		t.Fatal(err)
	}
	r := m.must(t, "plan", "--enforce-allocatable", third)
	if !strings.Contains(r.stdout, "Pod was rejected: "+message) {
		t.Errorf("a plan that admits pods:\n%s", r.stdout)
	}
	if r := m.must(t, "plan", third); strings.Contains(r.stdout, "rejected") {
		t.Errorf("a plan that does not admit pods:\n%s", r.stdout)
	}
	first := m.ids(t, "fits")
	a.put(t, "pods.yaml", fmt.Sprintf(sizedPod, "fits", most)+"---\n"+fmt.Sprintf(sizedPod, "late", 100))
	until(t, "late runs", func() bool { return m.isReady(t, "late") })
	second := m.ids(t, "late")
	a.put(t, "pods.yaml", fmt.Sprintf(sizedPod, "fits", most)+"---\n"+fmt.Sprintf(sizedPod, "late", most))
	until(t, "the edit is not applied",
		func() bool { return strings.Contains(a.log.String(), "the edit is not applied") })
	a.kill(t)
	a = startAgent(t, m, a.dir)
	until(t, "the agent is ready", func() bool { return a.status(t).Ready })
	if now := m.ids(t, "fits"); !maps.Equal(now, first) {
		t.Errorf("the containers of fits changed: %v, before %v", now, first)
	}
	if now := m.ids(t, "late"); !maps.Equal(now, second) {
		t.Errorf("the containers of late changed: %v, before %v", now, second)
	}
	a.stop(t)
	m.must(t, "delete", "fits", "late")
}
