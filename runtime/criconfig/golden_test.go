package criconfig

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
)

// eachRow calls visit with every row of a recorded file, as a subtest.
func eachRow[R any](t *testing.T, file string, name func(*R) string, visit func(*testing.T, *R)) {
	t.Helper()
	podspectest.EachRow(t, filepath.Join("testdata", file+".train.jsonl.gz"), func(line []byte) {
		var row R
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		t.Run(name(&row), func(t *testing.T) { visit(t, &row) })
	})
}

// captured is a pod and the messages a kubelet sent for it.
type captured struct {
	Name          string            `json:"name"`
	Manifest      *v1.Pod           `json:"manifest"`
	SandboxConfig json.RawMessage   `json:"sandboxConfig"`
	Containers    []json.RawMessage `json:"containers"`
}

// The machine of the captures.
func capturedNode() Node {
	return Node{
		Name: "node", IPs: nil, MemoryBytes: 24 << 30, CPUs: 2, SwapController: true,
		HugePageSizes: []string{"2MB", "1GB"},
		ResolvConf:    []byte("nameserver 10.255.255.53\n"),
		SeccompRoot:   "$ROOT/seccomp",
		Handlers:      map[string]Handler{"": {UserNamespaces: true}},
	}
}

func TestMessagesEqualTheKubelets(t *testing.T) {
	eachRow(t, "cri_config", func(r *captured) string { return r.Name }, func(t *testing.T, r *captured) {
		t.Helper()
		corev1.SetObjectDefaults_Pod(r.Manifest)
		d := &podspec.Desired{Pod: r.Manifest}
		want := &runtimeapi.PodSandboxConfig{}
		decode(t, r.SandboxConfig, want)
		got, err := Sandbox(d, capturedNode(), Paths{LogDir: want.GetLogDirectory()}, want.GetMetadata().GetAttempt())
		if err != nil {
			t.Fatal(err)
		}
		dropOwn(got.GetAnnotations())
		slices.Sort(want.GetDnsConfig().GetOptions())
		slices.Sort(got.GetDnsConfig().GetOptions())
		compare(t, want, got)
		for _, text := range r.Containers {
			compareContainer(t, d, text)
		}
	})
}

func compareContainer(t *testing.T, d *podspec.Desired, text json.RawMessage) {
	t.Helper()
	want := &runtimeapi.ContainerConfig{}
	decode(t, text, want)
	ref, ok := podspec.FindContainer(d.Pod, want.GetMetadata().GetName())
	if !ok {
		t.Fatalf("no container %s", want.GetMetadata().GetName())
	}
	got, err := Container(ContainerInput{
		Desired: d, Container: ref, Node: capturedNode(), Attempt: want.GetMetadata().GetAttempt(),
		Images: capturedImages(ref, want), PodIPs: podIPs(want), Paths: capturedPaths(ref, want),
	})
	if err != nil {
		t.Fatal(err)
	}
	dropOwn(got.GetAnnotations())
	sortEnv(want)
	sortEnv(got)
	compare(t, want, got)
}

// podIPs returns the address of the pod in the recording.
func podIPs(want *runtimeapi.ContainerConfig) []string {
	for _, e := range want.GetEnvs() {
		if v := string(e.GetValue()); strings.Count(v, ".") == 3 && strings.HasPrefix(v, "10.") {
			return []string{v}
		}
	}
	return []string{"10.0.0.1"}
}

// capturedPaths returns the kubelet's paths on disk from the recorded mounts.
func capturedPaths(ref podspec.ContainerRef, want *runtimeapi.ContainerConfig) Paths {
	p := Paths{Volumes: map[string]string{}, SubPaths: map[int]string{}}
	for _, m := range want.GetMounts() {
		switch m.GetContainerPath() {
		case "/etc/hosts":
			if strings.HasSuffix(m.GetHostPath(), "/etc-hosts") {
				p.EtcHosts = m.GetHostPath()
			}
		case ref.TerminationMessagePath:
			p.TerminationLog = m.GetHostPath()
		}
	}
	for i, vm := range ref.VolumeMounts {
		j := slices.IndexFunc(want.GetMounts(), func(m *runtimeapi.Mount) bool { return m.GetContainerPath() == absolute(vm.MountPath) })
		if j < 0 {
			continue
		}
		if vm.SubPath != "" || vm.SubPathExpr != "" {
			p.SubPaths[i] = want.GetMounts()[j].GetHostPath()
		} else {
			p.Volumes[vm.Name] = want.GetMounts()[j].GetHostPath()
		}
	}
	return p
}

func capturedImages(ref podspec.ContainerRef, want *runtimeapi.ContainerConfig) map[string]model.Image {
	images := map[string]model.Image{ref.Image: {ID: want.GetImage().GetImage(), UID: new(int64)}}
	for _, m := range want.GetMounts() {
		if m.GetImage() != nil {
			images[m.GetImage().GetUserSpecifiedImage()] = model.Image{ID: m.GetImage().GetImage()}
		}
	}
	return images
}

func decode(t *testing.T, text json.RawMessage, into proto.Message) {
	t.Helper()
	if err := protojson.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// dropOwn removes podctl's own annotations, which no kubelet writes.
func dropOwn(annotations map[string]string) {
	for key := range annotations {
		if strings.HasPrefix(key, "io.podctl.") {
			delete(annotations, key)
		}
	}
}

// sortEnv sorts the variables, because the kubelet's order is random. It removes the suffix of a static pod's name.
func sortEnv(c *runtimeapi.ContainerConfig) {
	for _, e := range c.GetEnvs() {
		e.Value = []byte(strings.ReplaceAll(string(e.GetValue()), "-node1", ""))
	}
	for _, m := range c.GetMounts() {
		for key := range m.GetImage().GetAnnotations() {
			if strings.HasPrefix(key, "kubernetes.io/config.") {
				delete(m.GetImage().GetAnnotations(), key)
			}
		}
	}
	slices.SortFunc(c.GetEnvs(), func(a, b *runtimeapi.KeyValue) int { return strings.Compare(a.GetKey(), b.GetKey()) })
}

func compare(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreEmptyMessages()); diff != "" {
		t.Errorf("differs from the kubelet's message (-kubelet +podctl):\n%s", diff)
	}
}
