package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/state"
)

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  hostUsers: false
  securityContext: {runAsNonRoot: true}
  initContainers: [{name: i, image: 'i:1', volumeMounts: [{name: v, mountPath: /v}]}]
  containers:
  - name: a
    image: 'i:1'
    securityContext: {runAsNonRoot: true}
    env:
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: P, valueFrom: {secretKeyRef: {name: s, key: p}}}
    - {name: F, valueFrom: {fileKeyRef: {volumeName: v, path: f, key: k}}}
    volumeMounts: [{name: v, mountPath: /v, subPath: part}, {name: m, mountPath: /m}]
  volumes: [{name: v, emptyDir: {}}, {name: m, image: {reference: 'm:1'}}]
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {p: correct horse}
`

func loadPod(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}

// decode reads one message.
func decode[M proto.Message](t *testing.T, text []byte, into M) M {
	t.Helper()
	if err := (protojson.UnmarshalOptions{}).Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// TestMessagesWithoutARuntime checks that values of a runtime have placeholders, that digests replace Secrets, and that
// nothing is created on disk.
func TestMessagesWithoutARuntime(t *testing.T) {
	layout := state.Layout{Root: "/not/there", LogRoot: "/not/there/logs"}
	d := loadPod(t, manifest)
	got, err := Render(d, layout, "/own")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Containers) != 2 || got.Pod.Name != "web" {
		t.Fatalf("%d containers of pod %s", len(got.Containers), got.Pod)
	}
	sandbox := decode(t, got.Sandbox, &runtimeapi.PodSandboxConfig{})
	if !strings.HasPrefix(sandbox.GetLinux().GetCgroupParent(), "/own/") || !strings.HasPrefix(sandbox.GetLogDirectory(), layout.LogRoot) {
		t.Errorf("cgroup %s, logs %s", sandbox.GetLinux().GetCgroupParent(), sandbox.GetLogDirectory())
	}
	maps := sandbox.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions().GetUids()
	if len(maps) != 1 || maps[0].GetHostId() == 0 {
		t.Errorf("ids %v", maps)
	}
	a := decode(t, got.Containers[1], &runtimeapi.ContainerConfig{})
	env := map[string]string{}
	for _, e := range a.GetEnvs() {
		env[e.GetKey()] = string(e.GetValue())
	}
	if env["IP"] != unknownIP || env["F"] != unknownFileValue ||
		env["P"] == "" || strings.Contains(env["P"], "correct horse") || a.GetImage().GetImage() != unknownImage {
		t.Errorf("environment %v, image %s", env, a.GetImage().GetImage())
	}
	var mounts []string
	for _, m := range a.GetMounts() {
		mounts = append(mounts, strings.TrimPrefix(m.GetHostPath(), layout.Pod(d.Pod.UID).Dir())+m.GetImage().GetImage())
	}
	want := []string{"/volume-subpaths/v/a/0", unknownImage, "/etc-hosts", "/containers/a/" + unknownMessage}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts (-want +got)\n%s", diff)
	}
}

// TestRenderingChangesNoManifest checks that the requirement of a known user is removed from the messages only, not
// from the manifest.
func TestRenderingChangesNoManifest(t *testing.T) {
	d := loadPod(t, manifest)
	if r := renderable(d).Pod.Spec; r.SecurityContext.RunAsNonRoot != nil || r.Containers[0].SecurityContext.RunAsNonRoot != nil {
		t.Error("a user has to be known")
	}
	if s := d.Pod.Spec; s.SecurityContext.RunAsNonRoot == nil ||
		s.Containers[0].SecurityContext.RunAsNonRoot == nil || len(d.Objects.Secrets["s"].Data) == 0 {
		t.Error("the manifest was changed")
	}
}

// TestAssumedRuntimeHasTheHandler checks that the assumed runtime has the handler of the pod.
func TestAssumedRuntimeHasTheHandler(t *testing.T) {
	d := loadPod(t, strings.Replace(manifest, "hostUsers: false", "hostUsers: false\n  runtimeClassName: kata", 1))
	node := renderNode(d, state.Layout{}, "")
	want := criconfig.Handler{RecursiveReadOnlyMounts: true, UserNamespaces: true}
	if len(node.Handlers) != 1 || node.Handlers["kata"] != want {
		t.Errorf("handlers %v", node.Handlers)
	}
	for _, owner := range []string{"", podspec.OwnerAPI} {
		d.Owner = owner
		if handler, err := node.HandlerOf(d); handler != "kata" || err != nil {
			t.Errorf("owner %q: handler %q, %v", owner, handler, err)
		}
	}
}

// TestPodsThatCannotBeRendered checks that the error names the pod.
func TestPodsThatCannotBeRendered(t *testing.T) {
	d := loadPod(t, manifest)
	d.Pod.Name = "../web"
	if _, err := Render(d, state.Layout{Root: "/x", LogRoot: "/y"}, ""); err == nil ||
		!strings.HasPrefix(err.Error(), "pod default/../web: ") {
		t.Errorf("error %v", err)
	}
}
