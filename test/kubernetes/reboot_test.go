package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// rebooted are objects of the API server, with a pod that uses them and keeps running, and one that has finished.
const rebooted = `apiVersion: v1
kind: Service
metadata: {name: reboot}
spec: {ports: [{port: 80}]}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: reboot}
handler: runc
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: reboot}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  claimRef: {namespace: default, name: reboot}
  local: {path: %[3]s}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[1]s]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: reboot}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
  storageClassName: ""
  volumeName: reboot
---
apiVersion: v1
kind: Pod
metadata: {name: kept}
spec:
  nodeName: %[1]s
  hostNetwork: true
  runtimeClassName: reboot
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: config, configMap: {name: reboot}}
  - {name: secret, secret: {secretName: reboot}}
  - {name: claim, persistentVolumeClaim: {claimName: reboot}}
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
    - {name: claim, mountPath: /claim}
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

// fixed is a pod of a file on the node.
const fixed = `apiVersion: v1
kind: Pod
metadata: {name: fixed}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - {name: app, image: %s, command: [sleep, "1000000"]}
`

// reboot ends the agent and all containers, as a reboot does, changes the id of the boot, and starts the agent again. It
// returns how long it takes until containers of all pods run.
func (o *outage) reboot(t *testing.T, pods ...string) time.Duration {
	t.Helper()
	before := map[string]string{}
	for _, pod := range pods {
		before[pod] = o.appOf(t, pod)
	}
	o.agent.end(t)
	o.node.endAll(t)
	changeBootID(t)
	began := time.Now()
	o.startAgent(t)
	until(t, func() string {
		now := o.node.records(t)
		for _, pod := range pods {
			if !now.runsAgain("default/"+pod+"/app", before[pod]) {
				return fmt.Sprintf("pod %s does not run again: %v", pod, now)
			}
		}
		return ""
	})
	return time.Since(began)
}

// endAll ends all containers and sandboxes.
func (n *node) endAll(t *testing.T) {
	t.Helper()
	for id, what := range n.records(t) {
		if strings.HasSuffix(what, running) {
			n.stop(t, id)
		}
	}
	for _, what := range n.records(t) {
		if name, isSandbox := strings.CutSuffix(what, " SANDBOX_READY"); isSandbox {
			n.stopSandbox(t, name)
		}
	}
}

// runsAgain reports whether a container runs that is not the one with this id.
func (r records) runsAgain(name, id string) bool {
	for other, what := range r {
		if what == name+" "+running && other != id {
			return true
		}
	}
	return false
}

// changeBootID gives the kernel another id of its start until the test ends.
func changeBootID(t *testing.T) {
	t.Helper()
	const file = "/proc/sys/kernel/random/boot_id"
	id := filepath.Join(t.TempDir(), "boot_id")
	write(t, id, strings.TrimSpace(read(t, "/proc/sys/kernel/random/uuid"))+"\n")
	if err := mount(id, file, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(file, 0); err != nil {
			t.Error(err)
		}
	})
}

// inside is what the process of a container has of the objects of its pod.
type inside struct {
	handler string
	env     []string
	files   map[string]string
}

// lookInside reads the environment, files, and the handler of the container of a pod.
func (o *outage) lookInside(t *testing.T, pod string, files ...string) inside {
	t.Helper()
	id := o.appOf(t, pod)
	reply, err := o.node.cri.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		PID       int
		SandboxID string
	}
	if err = json.Unmarshal([]byte(reply.GetInfo()["info"]), &info); err != nil || info.PID == 0 {
		t.Fatalf("%v: no process in %v", err, reply.GetInfo())
	}
	sandbox, err := o.node.cri.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: info.SandboxID})
	if err != nil {
		t.Fatal(err)
	}
	process := filepath.Join("/proc", fmt.Sprint(info.PID))
	found := inside{handler: sandbox.GetStatus().GetRuntimeHandler(), files: map[string]string{}}
	found.env = slices.Sorted(strings.SplitSeq(read(t, filepath.Join(process, "environ")), "\x00"))
	for _, file := range files {
		found.files[file] = read(t, filepath.Join(process, "root", file))
	}
	return found
}

// keptFiles are the files of the volumes of the pod kept.
func keptFiles() []string {
	return []string{"/config/color", "/secret/word", "/claim/data", "/token/token"}
}

// check checks that a container has the objects of the test.
func (i inside) check(t *testing.T) {
	t.Helper()
	for file, want := range map[string]string{"/config/color": "red", "/secret/word": "swordfish", "/claim/data": "kept"} {
		if i.files[file] != want {
			t.Errorf("%s has %q, want %q", file, i.files[file], want)
		}
	}
	if i.handler != "runc" || i.files["/token/token"] == "" || !slices.Contains(i.env, "WORD=swordfish") ||
		!slices.Contains(i.env, "REBOOT_SERVICE_PORT=80") {
		t.Errorf("handler %q, token %q, environment %q", i.handler, i.files["/token/token"], i.env)
	}
}

// same checks that a container has the same objects as before.
func (i inside) same(t *testing.T, now inside) {
	t.Helper()
	if !slices.Equal(i.env, now.env) {
		t.Errorf("environment %q, was %q", now.env, i.env)
	}
	if i.handler != now.handler {
		t.Errorf("handler %q, was %q", now.handler, i.handler)
	}
	for file, text := range i.files {
		if now.files[file] != text {
			t.Errorf("%s has %q, had %q", file, now.files[file], text)
		}
	}
}

// applyRebooted creates the objects and pods of the test. There are no controllers that bind the claim.
func (o *outage) applyRebooted(t *testing.T) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	write(t, filepath.Join(data, "data"), "kept")
	path := filepath.Join(t.TempDir(), "pods.yaml")
	write(t, path, fmt.Sprintf(rebooted, nodeName, webImage, data))
	o.must(t, "create", "configmap", "reboot", "--from-literal=color=red")
	o.must(t, "create", "secret", "generic", "reboot", "--from-literal=word=swordfish")
	o.must(t, "apply", "-f", path)
	uid := o.must(t, "get", "pvc", "reboot", "-o", "jsonpath={.metadata.uid}")
	o.must(t, "patch", "pv", "reboot", "-p", fmt.Sprintf(`{"spec": {"claimRef": {"uid": %q}}}`, uid))
	for _, kind := range []string{"pv", "pvc"} {
		o.must(t, "patch", kind, "reboot", "--subresource=status", "-p", `{"status": {"phase": "Bound"}}`)
	}
	write(t, o.fixedFile(), fmt.Sprintf(fixed, webImage))
	o.must(t, "wait", "--for=condition=Ready", "pod/kept", "--timeout", patience.String())
	o.must(t, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/once", "--timeout", patience.String())
	until(t, func() string {
		if o.node.records(t).runsAgain("default/"+fixedPod+"/app", "") {
			return ""
		}
		return "pod " + fixedPod + " does not run"
	})
}

// fixedPod is the pod of fixedFile.
const fixedPod = "fixed"

func (o *outage) fixedFile() string { return o.path("manifests/fixed.yaml") }

// removeRebooted removes the objects and pods of the test.
func (o *outage) removeRebooted(t *testing.T) {
	t.Helper()
	o.must(t, "delete", "pod", "kept", "once", "--now")
	o.must(t, "delete", "service/reboot", "runtimeclass/reboot", "pvc/reboot", "pv/reboot", "--wait=false")
	if err := os.Remove(o.fixedFile()); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		for _, what := range o.runs(t) {
			if strings.Contains(what, fixedPod) {
				return "it is left: " + what
			}
		}
		return ""
	})
}

// testReboot ends all containers, and starts the agent without the API server. All pods run again with the objects that
// they had, and none that has finished. When the API server is back, no container restarts. After another reboot, no pod
// waits for its restart delay.
func (o *outage) testReboot(t *testing.T) {
	o.applyRebooted(t)
	kept := o.lookInside(t, "kept", keptFiles()...)
	kept.check(t)
	o.stopServers(t)
	without := o.reboot(t, "kept", fixedPod)
	kept.same(t, o.lookInside(t, "kept", keptFiles()...))
	before := o.runs(t)
	for _, what := range before {
		if strings.HasPrefix(what, "default/once") {
			t.Errorf("a pod that has finished runs: %s", what)
		}
	}
	o.startServers(t)
	o.must(t, "wait", "--for=condition=Ready", "pod/kept", "--timeout", patience.String())
	o.create(t, "returned")
	o.must(t, "delete", "pod", "returned", "--now")
	sameRuns(t, before, o.runs(t))
	o.prove(t, "Succeeded", "get", "pod", "once", "-o", "jsonpath={.status.phase}")

	with := o.reboot(t, "kept", fixedPod)
	o.must(t, "wait", "--for=condition=Ready", "pod/kept", "--timeout", patience.String())
	kept.same(t, o.lookInside(t, "kept", keptFiles()...))
	o.prove(t, "", "get", "events", "--field-selector", "reason=BackOff", "-o", "jsonpath={.items[*].message}")
	t.Logf("start with the API server %v, without it %v", with, without)
	o.removeRebooted(t)
}
