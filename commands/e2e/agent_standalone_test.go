//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const standalonePods = `apiVersion: v1
kind: Pod
metadata: {name: basic}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: regular
    image: registry.local/podctl/demo:1
    args: [sleep]
    resources: {requests: {memory: 15Mi}, limits: {memory: 15Mi}}
    readinessProbe: {initialDelaySeconds: 1, timeoutSeconds: 2, exec: {command: [/demo, check, file, /demo]}}
---
apiVersion: v1
kind: Pod
metadata: {name: envfile}
spec:
  restartPolicy: Never
  volumes: [{name: config, emptyDir: {}}]
  initContainers:
  - name: setup
    image: registry.local/podctl/demo:1
    args: [write, /data/config.env, "CONFIG_1='value1'\nCONFIG_2='value2'"]
    volumeMounts: [{name: config, mountPath: /data}]
  containers:
  - name: use
    image: registry.local/podctl/demo:1
    args: [print]
    env:
    - {name: CONFIG_1, valueFrom: {fileKeyRef: {volumeName: config, path: config.env, key: CONFIG_1}}}
    - {name: CONFIG_2, valueFrom: {fileKeyRef: {volumeName: config, path: config.env, key: CONFIG_2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: prepared}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: init, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  containers:
  - {name: main, image: "registry.local/podctl/demo:1", args: [sleep]}
---
apiVersion: v1
kind: Pod
metadata: {name: together}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: init, image: "registry.local/podctl/demo:1", args: [exit, "0"]}
  - {name: sidecar, image: "registry.local/podctl/demo:1", args: [sleep], restartPolicy: Always}
  containers:
  - name: source
    image: registry.local/podctl/demo:1
    args: [exit, --after, 3s, "42"]
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]
  - {name: regular, image: "registry.local/podctl/demo:1", args: [sleep]}
`

const nodePortPod = `apiVersion: v1
kind: Pod
metadata: {name: ported, namespace: %s}
spec:
  terminationGracePeriodSeconds: 1
  hostNetwork: true
  containers:
  - name: %s
    image: registry.local/podctl/demo:1
    args: [sleep]
    ports: [{name: tcp, containerPort: %s, protocol: TCP}]
    readinessProbe: {periodSeconds: 1, exec: {command: [/demo, check, file, /demo]}}
`

// testAgentStandalone: pods of a directory, without an API server, in the agent's /pods. The cases are those of the
// kubelet's test/e2e_node/standalone_test.go:
//
//   - basic: "the pod should be running", "the pod should be running and kubelet not panic"
//   - ported: "the pod with the port on host network should be running and can be upgraded when the container name
//     changes", and when its namespace changes, which a kubelet does not do
//   - envfile: "the pod should be running and consume variables"
//   - prepared: "should be ready after init container is removed and kubelet restarts"
//   - together: "should restart all containers on regular container exit"
//
// A restarted kubelet gives a pod another startTime. The agent keeps it.
func testAgentStandalone(t *testing.T, m *machine) {
	a := startAgent(t, m, t.TempDir())
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	a.put(t, "pods.yaml", standalonePods)
	a.put(t, "ported.yaml", fmt.Sprintf(nodePortPod, "default", "app", port))
	until(t, "basic is ready", func() bool { return isListedReady(a.listed(t, "default", "basic")) })
	until(t, "ported is ready", func() bool { return isListedReady(a.listed(t, "default", "ported")) })

	a.put(t, "ported.yaml", fmt.Sprintf(nodePortPod, "default", "upgraded", port))
	until(t, "the container with another name is ready", func() bool {
		p := a.listed(t, "default", "ported")
		return isListedReady(p) && p.Spec.Containers[0].Name == "upgraded" && len(p.Status.ContainerStatuses) == 1 &&
			p.Status.ContainerStatuses[0].Name == "upgraded"
	})
	a.put(t, "ported.yaml", fmt.Sprintf(nodePortPod, "moved", "upgraded", port))
	until(t, "the pod runs in another namespace", func() bool {
		return isListedReady(a.listed(t, "moved", "ported")) && a.listed(t, "default", "ported") == nil
	})

	until(t, "envfile has succeeded", func() bool {
		p := a.listed(t, "default", "envfile")
		return p != nil && p.Status.Phase == v1.PodSucceeded
	})
	if r := m.must(t, "logs", "envfile", "use"); !strings.Contains(r.stdout, "env CONFIG_1=value1\n") ||
		!strings.Contains(r.stdout, "env CONFIG_2=value2\n") {
		t.Errorf("the variables do not match the file:\n%s", r.stdout)
	}
	testInitRecordRemoved(t, m, a)
}

// testInitRecordRemoved removes the record of a completed init container, and kills the agent.
func testInitRecordRemoved(t *testing.T, m *machine, a *agentProcess) {
	until(t, "prepared is ready", func() bool { return isListedReady(a.listed(t, "default", "prepared")) })
	before, ids := a.listed(t, "default", "prepared"), m.ids(t, "prepared")
	_, id, _ := strings.Cut(before.Status.InitContainerStatuses[0].ContainerID, "://")
	removeContainer(t, m, id)
	a.kill(t)
	a = startAgent(t, m, a.dir)
	until(t, "the agent is ready", func() bool { return a.status(t).Ready })
	after := a.listed(t, "default", "prepared")
	if now := m.ids(t, "prepared"); !maps.Equal(now, ids) || !isListedReady(after) ||
		!after.Status.StartTime.Equal(before.Status.StartTime) {
		t.Errorf("prepared runs as %v, before as %v: %+v", now, ids, after.Status)
	}
	if s := after.Status.InitContainerStatuses; len(s) != 1 || s[0].State.Terminated == nil ||
		s[0].State.Terminated.Reason != "Completed" || s[0].State.Terminated.ExitCode != 0 {
		t.Errorf("its init container is %+v", s)
	}
	until(t, "all containers of together have been restarted", func() bool {
		p := a.listed(t, "default", "together")
		counts := restarts(&p.Status)
		return counts["init"] > 0 && counts["sidecar"] > 0 && counts["source"] > 0 && counts["regular"] > 0
	})
	if !isListedReady(a.listed(t, "default", "basic")) {
		t.Error("basic is not ready any more")
	}
	a.remove(t, "pods.yaml", "ported.yaml")
	until(t, "all pods are gone", func() bool { return len(a.pods(t)) == 0 })
	a.stop(t)
}

// pods returns the pods of the agent's /pods.
func (a *agentProcess) pods(t *testing.T) []v1.Pod {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(a.m.state, "agent.sock"))
		},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://agent/pods", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close() //nolint:errcheck // it is read to its end
	var list v1.PodList
	if err := json.NewDecoder(reply.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// listed returns a pod of the agent's /pods, or nil if it is not there.
func (a *agentProcess) listed(t *testing.T, namespace, name string) *v1.Pod {
	t.Helper()
	for _, p := range a.pods(t) {
		if p.Namespace == namespace && p.Name == name {
			return &p
		}
	}
	return nil
}

// isListedReady reports whether a pod runs and is ready.
func isListedReady(p *v1.Pod) bool {
	if p == nil || p.Status.Phase != v1.PodRunning {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// restarts returns the restart counts of all containers of a pod.
func restarts(s *v1.PodStatus) map[string]int32 {
	counts := map[string]int32{}
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			counts[list[i].Name] = list[i].RestartCount
		}
	}
	return counts
}
