//go:build e2e

package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// testTerminationMessage: the termination message of a container is in its status, from its file or from its log.
func testTerminationMessage(t *testing.T, m *machine) {
	m.mustFail(t, "apply", "--wait=completed", "--timeout", "60s", write(t, lastWords))
	want := map[string]string{"file": "the disk is full", "log": "exiting with 4\n", "silent": ""}
	pod := m.pod(t, "words")
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.State.Terminated == nil || s.State.Terminated.Message != want[s.Name] {
			t.Errorf("%s: %+v, want the message %q", s.Name, s.State.Terminated, want[s.Name])
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
    volumeMounts: [{name: conf, mountPath: /own, subPathExpr: "for $(COLOUR)"}]
  volumes:
  - {name: conf, emptyDir: {}}
`

// testEnvFile: a variable and a part of a subPath come from a file that an init container wrote.
func testEnvFile(t *testing.T, m *machine) {
	// The program takes its argument as a file name, and the file does not exist.
	m.mustFail(t, "apply", "--wait=completed", "--timeout", "60s", write(t, envFile))
	if r := m.must(t, "logs", "envfile", "app"); !strings.Contains(r.stdout, "blue green/$(MISSING)/") {
		t.Errorf("the container printed %q", r.stdout)
	}
	m.must(t, "delete", "envfile")
}

// testHostPortConflict: a port in use holds the pod before any container starts, regardless of its owner.
func testHostPortConflict(t *testing.T, m *machine) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	manifest := edited(t, write(t, resizable), "args: [log, --forever]",
		"args: [log, --forever]\n    ports: [{containerPort: 80, hostPort: "+port+"}]")
	if r := m.run(t, "plan", "--exit-code", manifest); r.code != 3 ||
		!strings.Contains(r.stdout, "hostPort "+port+"/TCP is used by a process of this machine") {
		t.Errorf("plan: exit code %d\n%s", r.code, r.stdout)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	if p := m.plan(t, manifest); !p.Complete {
		t.Errorf("the pod conflicts with its own port: %+v", p.Holds)
	}
	other := edited(t, manifest, "name: resize", "name: second")
	if r := m.run(t, "apply", "--wait", "--timeout", "10s", other); r.code != 3 ||
		!strings.Contains(r.stderr, "used by pod default/resize") {
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

// testClaim: files in a claim are kept for the next pod, until the claim is deleted with --volumes.
func testClaim(t *testing.T, m *machine) {
	first := write(t, claimPod)
	if r := m.must(t, "validate", first); !strings.Contains(r.stdout, "no effect") {
		t.Errorf("validate does not explain the size of a claim:\n%s", r.stdout)
	}
	m.must(t, "apply", "--wait=completed", "--timeout", "60s", first)
	m.must(t, "delete", "claim")
	second := edited(t, edited(t, first, "args: [write, /data/greeting, \"hello\"]", "args: [read, /data/greeting]"),
		"metadata: {name: claim}", "metadata: {name: reader}")
	m.must(t, "apply", "--wait=completed", "--timeout", "60s", second)
	if r := m.must(t, "logs", "reader"); !strings.Contains(r.stdout, "hello") {
		t.Errorf("the second pod read %q", r.stdout)
	}
	if phase := m.pod(t, "reader").Status.Phase; phase != v1.PodSucceeded {
		t.Errorf("phase %s", phase)
	}
	m.must(t, "delete", "--volumes", "reader")
	m.mustFail(t, "apply", "--wait=completed", "--timeout", "60s", second)
	if phase := m.pod(t, "reader").Status.Phase; phase != v1.PodFailed {
		t.Errorf("phase %s: the claim exists in spite of --volumes", phase)
	}
	m.must(t, "delete", "reader")
	dir := filepath.Join(m.state, "claims", "default", "data")
	if m.must(t, "prune"); !exists(dir) {
		t.Error("prune removed a claim without --volumes")
	}
	if r := m.must(t, "prune", "--volumes", "--dry-run"); !strings.Contains(r.stdout, "claim default/data") ||
		!exists(dir) {
		t.Errorf("prune --volumes --dry-run:\n%s%s", r.stdout, r.stderr)
	}
	if r := m.must(t, "prune", "--volumes"); !strings.Contains(r.stdout, "claim default/data") || exists(dir) {
		t.Errorf("prune --volumes:\n%s%s", r.stdout, r.stderr)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

const everything = `apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {app.conf: "colour=blue\n", other: "x\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {token: "t0ken\n"}
---
apiVersion: v1
kind: Pod
metadata:
  name: everything
  labels: {app: web}
  annotations: {note: "a note"}
spec:
  restartPolicy: Never
  hostname: host-a
  subdomain: sub
  dnsPolicy: None
  dnsConfig: {nameservers: [192.0.2.53], searches: [example.test], options: [{name: ndots, value: "3"}]}
  hostAliases: [{ip: 192.0.2.7, hostnames: [seven.test]}]
  securityContext:
    runAsUser: 1000
    runAsGroup: 3000
    fsGroup: 2000
    supplementalGroups: [4000]
    seccompProfile: {type: RuntimeDefault}
    sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "80"}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    command: [/demo, print]
    args: [/proc/self/status, /etc/hosts, /etc/resolv.conf, /proc/sys/net/ipv4/ip_unprivileged_port_start,
           /conf/a/b.conf, /secret/token, /down/labels, /all/one, /all/two, /single, "/$(NAME)"]
    env:
    - {name: NAME, value: single}
    - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    - {name: BOTH, value: "$(POD)-$(APP)-$$(POD)-$(MISSING)"}
    - {name: TOKEN, valueFrom: {secretKeyRef: {name: key, key: token}}}
    envFrom: [{prefix: CM_, configMapRef: {name: conf}}]
    resources: {limits: {memory: 64Mi, cpu: 200m}}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
    - {name: conf, mountPath: /conf}
    - {name: secret, mountPath: /secret}
    - {name: down, mountPath: /down}
    - {name: all, mountPath: /all}
    - {name: conf2, mountPath: /single, subPath: app.conf}
    - {name: mem, mountPath: /mem}
  volumes:
  - {name: conf, configMap: {name: conf, defaultMode: 0440, items: [{key: app.conf, path: a/b.conf}]}}
  - {name: conf2, configMap: {name: conf}}
  - {name: secret, secret: {secretName: key, defaultMode: 0400}}
  - {name: down, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - name: all
    projected:
      sources:
      - {configMap: {name: conf, items: [{key: other, path: one}]}}
      - {downwardAPI: {items: [{path: two, fieldRef: {fieldPath: "metadata.annotations['note']"}}]}}
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
`

// testEverything checks the environment of a container with most of the Pod spec.
func testEverything(t *testing.T, m *machine) {
	manifest := write(t, everything)
	r := m.must(t, "apply", "--wait=completed", "--timeout", "60s", manifest)
	if strings.Contains(r.stdout+r.stderr, "t0ken") {
		t.Error("apply printed the secret")
	}
	pod := m.pod(t, "everything")
	logged := m.must(t, "logs", "everything").stdout
	if pod.Status.Phase != v1.PodSucceeded {
		t.Fatalf("phase %s\n%s", pod.Status.Phase, logged)
	}
	for _, want := range []string{
		"env POD=everything\n", "env IP=10.", "env APP=web\n", "env LIMIT=64\n",
		"env BOTH=everything-web-$(POD)-$(MISSING)\n",
		"env CM_app.conf=colour=blue\n", "env CM_other=x\n", "env TOKEN=t0ken\n",
		"hostname host-a\n", "user 1000 3000\n",
		"Groups:\t2000 3000 4000", "NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
		"192.0.2.7\tseven.test", "host-a", "nameserver 192.0.2.53", "search example.test", "options ndots:3",
		"ip_unprivileged_port_start mode 644 owner 0:0\n80",
		"file /conf/a/b.conf mode 440 owner 0:2000\ncolour=blue", "file /secret/token mode 440 owner 0:2000\nt0ken",
		"file /down/labels mode 644 owner 0:2000\napp=\"web\"", "file /all/one mode 644 owner 0:2000\nx", "a note",
		"file /single mode 644 owner 0:2000\ncolour=blue",
	} {
		if !strings.Contains(logged, want) {
			t.Errorf("the container does not see %q", want)
		}
	}
	if t.Failed() {
		t.Log(logged)
	}
	m.must(t, "delete", "everything")
}

const imageVolume = `apiVersion: v1
kind: Pod
metadata: {name: imagevolume}
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [check, file, /tools/demo]
    volumeMounts: [{name: tools, mountPath: /tools}]
  volumes:
  - {name: tools, image: {reference: "registry.local/podctl/demo:1", pullPolicy: Never}}
`

// testImageVolume: an image is mounted as a volume if the runtime supports it. Otherwise the plan reports that.
func testImageVolume(t *testing.T, m *machine) {
	manifest := write(t, imageVolume)
	if version := m.plan(t, manifest).Runtime.Version; strings.HasPrefix(version, "1.") {
		if r := m.run(t, "plan", manifest); r.code != 0 || !strings.Contains(r.stdout, "2.1 and newer can") {
			t.Errorf("containerd %s: exit code %d\n%s", version, r.code, r.stdout)
		}
		return
	}
	m.must(t, "apply", "--wait=completed", "--timeout", "60s", manifest)
	if phase := m.pod(t, "imagevolume").Status.Phase; phase != v1.PodSucceeded {
		t.Errorf("phase %s\n%s", phase, m.must(t, "logs", "imagevolume").stdout)
	}
	m.must(t, "delete", "imagevolume")
}

// testTakeover: export prints the pod with its UID, and lists fields that a kubelet would refuse.
func testTakeover(t *testing.T, m *machine) {
	m.must(t, "apply", "--wait", "--timeout", "60s", write(t, resizable))
	r := m.must(t, "export", "resize")
	if !strings.Contains(r.stdout, "uid: "+string(m.pod(t, "resize").UID)) {
		t.Errorf("export:\n%s", r.stdout)
	}
	if p := m.plan(t, write(t, r.stdout)); !p.Complete {
		t.Errorf("the exported manifest differs from the running pod: %+v", p.Steps)
	}
	m.must(t, "delete", "resize")
	m.must(t, "apply", "--wait", "--timeout", "60s", hello)
	if r := m.run(t, "export", "hello"); r.code != 3 || !strings.Contains(r.stderr, "may not refer to a ConfigMap") {
		t.Errorf("export of a pod with references: exit code %d\n%s", r.code, r.stderr)
	}
}

// testLiveKubelet: nothing is applied while a kubelet uses the same runtime.
func testLiveKubelet(t *testing.T, m *machine) {
	script := filepath.Join(t.TempDir(), "kubelet")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, script, "--container-runtime-endpoint=unix://"+m.socket())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	waitFor(t, func() bool {
		m.run(t, "delete", "hello") // The kubelet does not matter for a pod that needs no change.
		r := m.run(t, "apply", "--dry-run=false", hello)
		return r.code == 1 && strings.Contains(r.stderr, "podctl export")
	})
	if r := m.run(t, "doctor"); r.code != 1 || !strings.Contains(r.stdout, "✗ kubelet       kubelet (pid ") {
		t.Errorf("doctor: exit code %d\n%s", r.code, r.stdout)
	}
	m.must(t, "apply", "--allow-kubelet", hello)
}
