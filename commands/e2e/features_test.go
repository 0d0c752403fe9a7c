//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// features returns the features of the runtime's default handler. With PODCTL_TEST_FEATURES=all, a missing feature is a
// failure.
func (m *machine) features(t *testing.T) *runtimeapi.RuntimeHandlerFeatures {
	t.Helper()
	reply, err := m.cri.Status(t.Context(), &runtimeapi.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var features *runtimeapi.RuntimeHandlerFeatures
	for _, h := range reply.GetRuntimeHandlers() {
		if h.GetName() == "" {
			features = h.GetFeatures()
		}
	}
	all := features.GetUserNamespaces() && features.GetRecursiveReadOnlyMounts()
	if os.Getenv("PODCTL_TEST_FEATURES") == "all" && !all {
		t.Fatalf("the runtime has %v, want all features", features)
	}
	return features
}

// wantHold checks that a plan holds a container for a reason, and that a pass does not create it.
func (m *machine) wantHold(t *testing.T, manifest, container, reason string) {
	t.Helper()
	if r := m.run(t, "plan", manifest); !strings.Contains(r.stdout, " held ") || !strings.Contains(r.stdout, reason) {
		t.Errorf("the plan has exit code %d and does not contain %q:\n%s", r.code, reason, r.stdout)
	}
	m.run(t, "apply", manifest)
	reply, err := m.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range reply.GetContainers() {
		if c.GetLabels()["io.kubernetes.pod.name"] == "held" && c.GetMetadata().GetName() == container {
			t.Errorf("container %s was created, although the plan holds it", container)
		}
	}
	m.run(t, "delete", "held")
}

const ownUsers = `apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {word: hello}
---
apiVersion: v1
kind: Pod
metadata: {name: held}
spec:
  hostUsers: false
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: first
    image: registry.local/podctl/demo:1
    args: [write, /data/first, written]
    volumeMounts: [{name: data, mountPath: /data}]
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: data, mountPath: /data}, {name: words, mountPath: /words}, {name: part, mountPath: /part, subPath: below}]
  volumes:
  - {name: data, emptyDir: {}}
  - {name: part, emptyDir: {}}
  - {name: words, configMap: {name: words}}
`

// testUserNamespaces: root in a pod is another user on the node, in a range of IDs that belongs to this pod only and
// does not change. Volumes belong to root in both views. If the runtime does not support it, the plan reports that and
// no container starts.
func testUserNamespaces(t *testing.T, m *machine) {
	manifest := write(t, ownUsers)
	if !m.features(t).GetUserNamespaces() {
		m.wantHold(t, manifest, "first", "does not support user namespaces")
		return
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	first := m.firstUser(t, "held")
	if first < 65536 {
		t.Errorf("root of the pod is user %d of the node", first)
	}
	read := m.must(t, "exec", "held", "--", "/demo", "read", "/data/first", "/words/word").stdout
	if strings.Count(read, "owner 0:0") != 2 || !strings.Contains(read, "written") || !strings.Contains(read, "hello") {
		t.Errorf("the volumes in the pod:\n%s", read)
	}
	m.must(t, "exec", "held", "--", "/demo", "write", "/part/more", "text")
	m.wantOwnedByRoot(t, "held", "data/first", "part/below/more")

	m.must(t, "restart", "held")
	if again := m.firstUser(t, "held"); again != first {
		t.Errorf("after a restart, root of the pod is user %d and was %d", again, first)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", edited(t, manifest, "name: held", "name: other"))
	if other := m.firstUser(t, "other"); other < first+65536 && first < other+65536 {
		t.Errorf("two pods have users from %d and from %d", first, other)
	}
	m.must(t, "delete", "held", "other")
}

// firstUser returns the user on the node that is root in a pod.
func (m *machine) firstUser(t *testing.T, pod string) int {
	t.Helper()
	text := m.must(t, "exec", pod, "--", "/demo", "read", "/proc/self/uid_map").stdout
	_, table, _ := strings.Cut(text, "\n")
	var inside, outside, length int
	if _, err := fmt.Sscan(table, &inside, &outside, &length); err != nil || inside != 0 || length != 65536 {
		t.Fatalf("the pod's users are %q: %v", text, err)
	}
	return outside
}

// wantOwnedByRoot checks that files in the volumes of a pod belong to root on the node.
func (m *machine) wantOwnedByRoot(t *testing.T, pod string, files ...string) {
	t.Helper()
	for _, file := range files {
		found, err := filepath.Glob(filepath.Join(m.state, "pods", "*", "volumes", "*", file))
		if err != nil || len(found) != 1 {
			t.Errorf("%s of pod %s: %v %v", file, pod, found, err)
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(found[0], &st); err != nil || st.Uid != 0 || st.Gid != 0 {
			t.Errorf("%s belongs to %d:%d on the node: %v", found[0], st.Uid, st.Gid, err)
		}
	}
}

const allReadOnly = `apiVersion: v1
kind: Pod
metadata: {name: held}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: all
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: host, mountPath: /host, readOnly: true, recursiveReadOnly: Enabled}]
  - name: top
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: host, mountPath: /host, readOnly: true}]
  - name: perhaps
    image: registry.local/podctl/demo:1
    args: [sleep]
    volumeMounts: [{name: host, mountPath: /host, readOnly: true, recursiveReadOnly: IfPossible}]
  volumes:
  - {name: host, hostPath: {path: HOST}}
`

// testRecursiveReadOnly: mounts below a mount are also read-only if the pod requests it, and the status shows it. If
// the runtime does not support it, the plan reports that.
func testRecursiveReadOnly(t *testing.T, m *machine) {
	host := t.TempDir()
	below := filepath.Join(host, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(below, 0) })
	manifest := write(t, strings.Replace(allReadOnly, "HOST", host, 1))
	if !m.features(t).GetRecursiveReadOnlyMounts() {
		m.wantHold(t, manifest, "all", "recursive read-only")
		return
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	for container, writable := range map[string]bool{"all": false, "top": true, "perhaps": false} {
		r := m.run(t, "exec", "held", "-c", container, "--", "/demo", "write", "/host/below/"+container, "text")
		if wrote := r.code == 0; wrote != writable {
			t.Errorf("%s wrote below the mount: %t, want %t\n%s", container, wrote, writable, r.stderr)
		}
	}
	pod := m.pod(t, "held")
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		want := map[string]string{"all": "Enabled", "top": "", "perhaps": "Enabled"}[s.Name]
		for _, mount := range s.VolumeMounts {
			got := ""
			if mount.RecursiveReadOnly != nil {
				got = string(*mount.RecursiveReadOnly)
			}
			if mount.MountPath == "/host" && got != want && (want != "" || got != "Disabled") {
				t.Errorf("the status of %s has recursiveReadOnly %q, want %q", s.Name, got, want)
			}
		}
	}
	m.must(t, "delete", "held")
}
