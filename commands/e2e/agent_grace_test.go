//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/agent/api"
)

// stubbornPod ignores signals, so that it runs until its grace period ends.
const stubbornPod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: %d
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep, --ignore]
    env: [{name: VERSION, value: v%d}]
`

// testAgentGracePeriods: a pod whose manifest is removed or changed gets its grace period, whatever happens to the
// manifest meanwhile. After it, the last manifest takes effect. Each file is a case of the kubelet's
// test/e2e_node/mirror_pod_grace_period_test.go:
//
//   - goes: "mirror pod termination should satisfy grace period when static pod is deleted"
//   - edited: "… when static pod is updated"
//   - often: "should update a static pod when the static pod is updated multiple times during the graceful termination
//     period"
//   - back, other: the same for a file that comes back while its pod is being deleted, as the same pod and as a pod
//     with another UID (pkg/kubelet/pod_workers_test.go: TestStaticPodExclusion)
//   - down: "and the container runtime is temporarily down during pod termination": "the mirror pod should terminate
//     successfully"
//
// There are no mirror pods. `podctl get` and `podctl agent status` show their state.
func testAgentGracePeriods(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir())
	grace := patient(4 * time.Second)
	manifest := func(name string, version int) string {
		return fmt.Sprintf(stubbornPod, name, int(grace.Seconds()), version)
	}
	names := []string{"goes", "edited", "often", "back", "other"}
	for _, name := range append(names, "down") {
		a.put(t, name+".yaml", manifest(name, 1))
	}
	first := map[string]string{}
	for _, name := range append(names, "down") {
		until(t, name+" runs", func() bool { return m.isReady(t, name) })
		first[name] = m.ids(t, name)["app"]
	}
	sandbox, began := m.readySandbox(t, "back"), time.Now()
	a.remove(t, "goes.yaml", "back.yaml", "other.yaml")
	a.put(t, "edited.yaml", manifest("edited", 2))
	until(t, "back and other are being deleted",
		func() bool { return a.isDeleting(t, "back") && a.isDeleting(t, "other") })
	a.put(t, "back.yaml", manifest("back", 1))
	a.put(t, "other.yaml", strings.Replace(manifest("other", 1), "name: other", "name: other, uid: another", 1))
	for version := 2; version < 22; version++ {
		a.put(t, "often.yaml", manifest("often", version))
		time.Sleep(100 * time.Millisecond)
	}
	ended := map[string]time.Duration{}
	until(t, "the first containers have ended", func() bool {
		for _, name := range names {
			if _, seen := ended[name]; !seen && !m.runs(t, first[name]) {
				ended[name] = time.Since(began)
			}
		}
		return len(ended) == len(names)
	})
	for name, after := range ended {
		if after < grace {
			t.Errorf("%s ended after %s, its grace period is %s", name, after, grace)
		}
	}
	for name, version := range map[string]string{"edited": "v2", "often": "v21", "back": "v1", "other": "v1"} {
		until(t, name+" runs again",
			func() bool { return m.isReady(t, name) && m.runsAnother(t, name, "app", first[name]) })
		if r := m.must(t, "exec", name, "--", "/demo", "print"); !strings.Contains(r.stdout, "VERSION="+version+"\n") {
			t.Errorf("%s does not run version %s of its manifest:\n%s", name, version, r.stdout)
		}
		want := map[bool]int32{true: 1, false: 0}[name == "edited" || name == "often"]
		if pod := m.pod(t, name); pod.Status.ContainerStatuses[0].RestartCount != want ||
			(pod.UID == "another") != (name == "other") {
			t.Errorf("%s: uid %s, status %+v", name, pod.UID, pod.Status.ContainerStatuses)
		}
	}
	if m.readySandbox(t, "back") == sandbox {
		t.Error("the pod whose file was restored was not recreated")
	}
	until(t, "goes is gone", func() bool { return m.isGone(t, "goes") })
	testRuntimeIsDown(t, m, a)
	a.stop(t)
	for _, name := range []string{"edited", "often", "back", "other"} {
		m.must(t, "delete", "--force", name)
	}
}

// testRuntimeIsDown: the agent continues a deletion when the runtime is back.
func testRuntimeIsDown(t *testing.T, m *machine, a *agentProcess) {
	a.remove(t, "down.yaml")
	until(t, "down is being deleted", func() bool { return a.isDeleting(t, "down") })
	killContainerd(t, m)
	until(t, "the agent knows that the runtime is down", func() bool { return !a.status(t).Runtime.Answers })
	if p := a.podStatus(t, "down"); p == nil || !p.Deleting {
		t.Errorf("without a runtime the pod that is being deleted is %+v", p)
	}
	m.must(t, "node", "up", "--containerd", need(t, "PODCTL_CONTAINERD"))
	until(t, "down is gone", func() bool { return m.isGone(t, "down") && a.podStatus(t, "down") == nil })
}

// remove removes files from the directory of the agent.
func (a *agentProcess) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(a.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// podStatus returns the status of a pod in `podctl agent status`. It is nil if the agent does not keep the pod.
func (a *agentProcess) podStatus(t *testing.T, name string) *api.Pod {
	t.Helper()
	for _, p := range a.status(t).Pods {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

func (a *agentProcess) isDeleting(t *testing.T, name string) bool {
	t.Helper()
	p := a.podStatus(t, name)
	return p != nil && p.Deleting && p.CurrentPass == "terminate"
}

// runs reports whether a container runs.
func (m *machine) runs(t *testing.T, id string) bool {
	t.Helper()
	reply, err := m.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		Id: id, State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return len(reply.GetContainers()) > 0
}
