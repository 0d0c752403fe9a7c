package kubernetes

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rebooted are pods with objects of the API server: one that keeps running, and one that has finished.
const rebooted = `apiVersion: v1
kind: Pod
metadata: {name: kept}
spec:
  nodeName: %[1]s
  hostNetwork: true
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: config, configMap: {name: reboot}}
  - {name: secret, secret: {secretName: reboot}}
  - name: token
    projected: {sources: [{serviceAccountToken: {path: token}}]}
  initContainers:
  - {name: before, image: %[2]s, command: [sleep, "0"]}
  containers:
  - name: app
    image: %[2]s
    imagePullPolicy: Always
    command: [sleep, "1000000"]
    env: [{name: WORD, valueFrom: {secretKeyRef: {name: reboot, key: word}}}]
    volumeMounts:
    - {name: config, mountPath: /config}
    - {name: secret, mountPath: /secret}
    - {name: token, mountPath: /token}
---
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  nodeName: %[1]s
  hostNetwork: true
  automountServiceAccountToken: false
  restartPolicy: Never
  containers:
  - {name: app, image: %[2]s, command: [sleep, "0"]}
`

// reboot ends the agent and all containers, as a reboot does, and starts the agent again. It returns how long it takes
// until a pod runs.
func (o *outage) reboot(t *testing.T, pod string) time.Duration {
	t.Helper()
	before := o.appOf(t, pod)
	o.agent.end(t)
	for id, what := range o.runs(t) {
		if strings.HasSuffix(what, running) {
			o.node.stop(t, id)
		}
	}
	for _, what := range o.runs(t) {
		if name, isSandbox := strings.CutSuffix(what, " SANDBOX_READY"); isSandbox {
			o.node.stopSandbox(t, name)
		}
	}
	began := time.Now()
	o.startAgent(t)
	until(t, func() string {
		for id, what := range o.node.records(t) {
			if what == "default/"+pod+"/app "+running && id != before {
				return ""
			}
		}
		return "pod " + pod + " does not run"
	})
	return time.Since(began)
}

// testReboot ends all containers, and starts the agent without the API server. All pods run again with the objects that
// they had, and none that has finished. When the API server is back, no container restarts.
func (o *outage) testReboot(t *testing.T) {
	o.must(t, "create", "configmap", "reboot", "--from-literal=color=red")
	o.must(t, "create", "secret", "generic", "reboot", "--from-literal=word=swordfish")
	path := filepath.Join(t.TempDir(), "pods.yaml")
	write(t, path, fmt.Sprintf(rebooted, nodeName, webImage))
	o.must(t, "apply", "-f", path)
	o.must(t, "wait", "--for=condition=Ready", "pod/kept", "--timeout", patience.String())
	o.must(t, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/once", "--timeout", patience.String())
	o.stop(t)
	without := o.reboot(t, "kept")
	before := o.runs(t)
	for _, what := range before {
		if strings.HasPrefix(what, "default/once") {
			t.Errorf("a pod that has finished runs: %s", what)
		}
	}
	o.start(t)
	o.must(t, "wait", "--for=condition=Ready", "pod/kept", "--timeout", patience.String())
	o.create(t, "returned")
	o.must(t, "delete", "pod", "returned", "--now")
	sameRuns(t, before, o.runs(t))
	o.prove(t, "Succeeded", "get", "pod", "once", "-o", "jsonpath={.status.phase}")
	o.must(t, "delete", "pod", "kept", "once", "--now")

	// Another pod has no restart delay.
	o.must(t, "apply", "-f", path)
	o.must(t, "wait", "--for=condition=Ready", "pod/kept", "--timeout", patience.String())
	with := o.reboot(t, "kept")
	t.Logf("start with the API server %v, without it %v", with, without)
	o.must(t, "delete", "pod", "kept", "once", "--now")
}
