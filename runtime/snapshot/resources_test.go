package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

// shownPod is a pod in which a runs, b has ended and c never started. The limits of a have been changed in the manifest
// but not in the runtime, and by another program in the runtime.
const shownPod = `apiVersion: v1
kind: Pod
metadata: {name: web, uid: u}
spec:
  restartPolicy: Never
  containers:
  - name: a
    image: i:1
    resources: {requests: {cpu: 100m, memory: 1Mi}, limits: {cpu: 800m, memory: 64Mi}}
    volumeMounts:
    - {name: v, mountPath: /rw}
    - {name: v, mountPath: /ro, readOnly: true}
    - {name: v, mountPath: /rro, readOnly: true, recursiveReadOnly: IfPossible}
  - {name: b, image: 'i:1', resources: {limits: {cpu: 5m}}}
  - {name: c, image: 'i:1', volumeMounts: [{name: v, mountPath: /rw}]}
  volumes: [{name: v, emptyDir: {}}]
`

const shownSnapshot = `{"apiVersion":"podctl.io/v1alpha1","kind":"Snapshot","takenAt":"2026-05-04T12:00:00Z",
"runtime":{"name":"containerd","version":"2","handlers":[{"name":"","features":{"recursive_read_only_mounts":true}}]},
"sandboxes":[{"id":"s","metadata":{"attempt":0},"state":"SANDBOX_READY","created_at":"1","network":{"ip":"10.0.0.1"}}],
"containers":[
{"podSandboxId":"s","status":{"id":"1","metadata":{"name":"a"},"state":"CONTAINER_RUNNING","started_at":"2",
 "annotations":{"io.kubernetes.x":""},"labels":{"io.kubernetes.container.name":"a"},
 "user":{"linux":{"uid":"7","gid":"8","supplemental_groups":["8","9"]}},
 "resources":{"linux":{"cpu_shares":"102","cpu_period":"100000","cpu_quota":"40000","memory_limit_in_bytes":"50331648"}}}},
{"podSandboxId":"s","status":{"id":"2","metadata":{"name":"b"},"state":"CONTAINER_EXITED","started_at":"2",
 "annotations":{"io.kubernetes.x":""},"labels":{"io.kubernetes.container.name":"b"},
 "resources":{"linux":{"cpu_period":"100000","cpu_quota":"1000"}}}}],
"actuated":{"containers":{
 "a":{"requests":{"cpu":"100m","memory":"1Mi"},"limits":{"cpu":"500m","memory":"32Mi"}},"b":{"limits":{"cpu":"1"}}}},
"disk":{"cgroup":true}}`

// shown returns the status of a manifest in a snapshot.
func shown(t *testing.T, manifest, observed string) *v1.PodStatus {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(manifest)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	recording, err := Read([]byte(observed))
	if err != nil {
		t.Fatal(err)
	}
	pods, err := recording.List(t.Context(), m.Pods)
	if err != nil {
		t.Fatal(err)
	}
	return &pods[0].Status
}

func asText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStatusOfResources checks that a running container has its last given resources with the runtime's values, and any
// other those of the manifest (kubelet: convertToAPIContainerStatuses).
func TestStatusOfResources(t *testing.T) {
	status := shown(t, shownPod, shownSnapshot)
	got := map[string]string{"pod": asText(t, status.Resources), "pod, allocated": asText(t, status.AllocatedResources)}
	for _, s := range status.ContainerStatuses {
		got[s.Name], got[s.Name+", allocated"] = asText(t, s.Resources), asText(t, s.AllocatedResources)
		got[s.Name+", user"], got[s.Name+", mounts"] = asText(t, s.User), asText(t, s.VolumeMounts)
	}
	want := map[string]string{
		"a":            `{"limits":{"cpu":"400m","memory":"48Mi"},"requests":{"cpu":"100m","memory":"1Mi"}}`,
		"a, allocated": `{"cpu":"100m","memory":"1Mi"}`,
		"a, user":      `{"linux":{"uid":7,"gid":8,"supplementalGroups":[8,9]}}`,
		"a, mounts": `[{"name":"v","mountPath":"/rw"},` +
			`{"name":"v","mountPath":"/ro","readOnly":true,"recursiveReadOnly":"Disabled"},` +
			`{"name":"v","mountPath":"/rro","readOnly":true,"recursiveReadOnly":"Enabled"}]`,
		"b":              `{"limits":{"cpu":"5m"},"requests":{"cpu":"5m"}}`,
		"b, allocated":   `{"cpu":"5m"}`,
		"b, user":        `null`,
		"b, mounts":      `null`,
		"c":              `null`,
		"c, allocated":   `null`,
		"c, user":        `null`,
		"c, mounts":      `[{"name":"v","mountPath":"/rw"}]`,
		"pod":            `{"limits":{"cpu":"505m","memory":"32Mi"},"requests":{"cpu":"105m","memory":"1Mi"}}`,
		"pod, allocated": `{"cpu":"105m","memory":"1Mi"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStatusOfPodResources checks that limits of a running pod are effective only if its cgroup has them.
func TestStatusOfPodResources(t *testing.T) {
	one := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: u}\nspec:\n  containers: [{name: a, " +
		"image: 'i:1', resources: {limits: {cpu: 1, memory: 1Mi}}}, {name: b, image: 'i:1'%s}]\n"
	running := `{"podSandboxId":"s","status":{"id":"NAME","metadata":{"name":"NAME"},"state":"CONTAINER_RUNNING",` +
		`"started_at":"2","annotations":{"io.kubernetes.x":""},"labels":{"io.kubernetes.container.name":"NAME"}}}`
	observed := func(cgroup string) string {
		return `{"apiVersion":"podctl.io/v1alpha1","kind":"Snapshot","takenAt":"2026-05-04T12:00:00Z",
"runtime":{"name":"containerd","version":"2"},
"sandboxes":[{"id":"s","metadata":{"attempt":0},"state":"SANDBOX_READY","created_at":"1","network":{"ip":"10.0.0.1"}}],
"containers":[` + strings.ReplaceAll(running, "NAME", "a") + "," + strings.ReplaceAll(running, "NAME", "b") +
			`],"disk":{` + cgroup + `}}`
	}
	const pending = `{"apiVersion":"podctl.io/v1alpha1","kind":"Snapshot","takenAt":"2026-05-04T12:00:00Z",` +
		`"runtime":{"name":"containerd","version":"2"}}`
	limited := strings.Replace(one, "%s", ", resources: {limits: {cpu: 500m}}", 1)
	open := strings.Replace(one, "%s", "", 1)
	const requested = `"requests":{"cpu":"1500m","memory":"1Mi"}}`
	for name, c := range map[string]struct{ manifest, observed, want string }{
		"not started":          {limited, pending, `{"limits":{"cpu":"1500m","memory":"1Mi"},` + requested},
		"all limited in cpu":   {limited, observed(`"cgroup":true`), `{"limits":{"cpu":"1500m"},` + requested},
		"not all":              {open, observed(`"cgroup":true`), `{"requests":{"cpu":"1","memory":"1Mi"}}`},
		"no cgroup of its own": {limited, observed(``), `{"requests":{"memory":"1Mi"}}`},
	} {
		if got := asText(t, shown(t, c.manifest, c.observed).Resources); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}
