//go:build e2e

package commands_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const lastWords = `apiVersion: v1
kind: Pod
metadata: {name: words}
spec:
  restartPolicy: Never
  containers:
  - name: file
    image: registry.local/podctl/demo:1
    args: [exit, --message, "the disk is full", "3"]
  - name: log
    image: registry.local/podctl/demo:1
    args: [exit, "4"]
    terminationMessagePolicy: FallbackToLogsOnError
  - name: silent
    image: registry.local/podctl/demo:1
    args: [exit, "5"]
`

// testTerminationMessage: what a container left as its last words is in its
// status, from its file or from its log.
func testTerminationMessage(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait=completed", "--timeout", "60s", write(t, lastWords))
	want := map[string]string{"file": "the disk is full", "log": "exiting with 4\n", "silent": ""}
	pod := m.pod(t, "words")
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.State.Terminated == nil || s.State.Terminated.Message != want[s.Name] {
			t.Errorf("%s: %+v, the message %q is wanted", s.Name, s.State.Terminated, want[s.Name])
		}
	}
	if pod.Status.Phase != v1.PodFailed {
		t.Errorf("phase %s", pod.Status.Phase)
	}
	m.must(t, "delete", "words")
}

const envFile = `apiVersion: v1
kind: Pod
metadata: {name: envfile}
spec:
  restartPolicy: Never
  initContainers:
  - name: make
    image: registry.local/podctl/demo:1
    args: [write, /conf/app.env, "COLOUR='blue green'\n"]
    volumeMounts: [{name: conf, mountPath: /conf}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [print, "$(COLOUR)/$(MISSING)/"]
    env:
    - {name: COLOUR, valueFrom: {fileKeyRef: {volumeName: conf, path: app.env, key: COLOUR}}}
    - {name: MISSING, valueFrom: {fileKeyRef: {volumeName: conf, path: absent.env, key: X, optional: true}}}
  volumes:
  - {name: conf, emptyDir: {}}
`

// testEnvFile: a variable comes from a file that an init container wrote.
func testEnvFile(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait=completed", "--timeout", "60s", write(t, envFile))
	if r := m.must(t, "logs", "envfile", "app"); !strings.Contains(r.stdout, "blue green/$(MISSING)/") {
		t.Errorf("the container printed %q", r.stdout)
	}
	m.must(t, "delete", "envfile")
}

// testHostPortConflict: a port that is taken holds the pod before anything
// starts, whoever has it.
func testHostPortConflict(t *testing.T, m *machine) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	manifest := edited(t, write(t, resizable), "args: [log, --forever]", "args: [log, --forever]\n    ports: [{containerPort: 80, hostPort: "+port+"}]")
	if r := m.run(t, "plan", "--exit-code", manifest); r.code != 3 || !strings.Contains(r.stdout, "hostPort "+port+"/TCP is used by a process of this machine") {
		t.Errorf("plan: exit code %d\n%s", r.code, r.stdout)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	if p := m.plan(t, manifest); !p.Complete {
		t.Errorf("the pod's own port is in its way: %+v", p.Holds)
	}
	other := edited(t, manifest, "name: resize", "name: second")
	if r := m.run(t, "apply", "--wait", "--timeout", "10s", other); r.code != 3 || !strings.Contains(r.stderr, "used by pod default/resize") {
		t.Errorf("apply of a second pod: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if len(m.ids(t, "second")) > 0 {
		t.Error("the second pod runs")
	}
	m.must(t, "delete", "resize")
	m.run(t, "delete", "second")
}

const claimPod = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: claim}
spec:
  restartPolicy: Never
  securityContext: {runAsUser: 1000, fsGroup: 2000}
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [write, /data/greeting, "hello"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
`

// testClaim: what is written into a claim is there for the next pod, until it is
// deleted with its volumes.
func testClaim(t *testing.T, m *machine) {
	first := write(t, claimPod)
	if r := m.must(t, "validate", first); !strings.Contains(r.stdout, "no effect") {
		t.Errorf("validate does not say what a claim's size means:\n%s", r.stdout)
	}
	m.must(t, "apply", "--wait=completed", "--timeout", "60s", first)
	m.must(t, "delete", "claim")
	second := edited(t, edited(t, first, "args: [write, /data/greeting, \"hello\"]", "args: [read, /data/greeting]"), "metadata: {name: claim}", "metadata: {name: reader}")
	m.must(t, "apply", "--wait=completed", "--timeout", "60s", second)
	if r := m.must(t, "logs", "reader"); !strings.Contains(r.stdout, "hello") {
		t.Errorf("the second pod read %q", r.stdout)
	}
	if phase := m.pod(t, "reader").Status.Phase; phase != v1.PodSucceeded {
		t.Errorf("phase %s", phase)
	}
	m.must(t, "delete", "--volumes", "reader")
	m.run(t, "apply", "--wait=completed", "--timeout", "60s", second)
	if phase := m.pod(t, "reader").Status.Phase; phase != v1.PodFailed {
		t.Errorf("phase %s: the claim is there in spite of --volumes", phase)
	}
	m.must(t, "delete", "--volumes", "reader")
}
