//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/runtime/plan"
)

// testContract: a real runtime passes the same contract as the one in memory.
func testContract(t *testing.T, m *machine) {
	conn, err := grpc.NewClient("unix://"+m.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	contract(t, subject{
		Runtime: m.cri, Images: runtimeapi.NewImageServiceClient(conn), Image: "registry.local/podctl/demo:1",
		Forever:      []string{"/demo", "log", "--forever"},
		Stubborn:     []string{"/demo", "sleep", "--ignore"},
		Once:         []string{"/demo", "exit", "0"},
		LogDir:       m.logs,
		CgroupParent: m.cgroupParent(t),
		Tick:         func() {},
	})
}

// at runs podctl in this process with a fixed clock.
func (m *machine) at(t *testing.T, now time.Time, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := &commands.Env{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: func() time.Time { return now },
		Getenv: func(string) string { return "" },
	}
	args = append([]string{"--state-dir", m.state, "--log-root", m.logs, "--cgroup-root", m.cgroupRoot()}, args...)
	if code := commands.Main(t.Context(), env, args); code != 0 {
		t.Fatalf("podctl %v: exit code %d\n%s", args, code, errs.String())
	}
	return out.String()
}

// testSnapshot: a plan from a snapshot is equal to the live plan, byte for byte. The snapshot needs no runtime and
// contains no secret.
func testSnapshot(t *testing.T, m *machine) {
	const secret = "hunter2-in-a-snapshot"
	base := edited(t, hello, "name: hello\n  labels:", "name: shot\n  labels:")
	text, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	manifest := write(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: shot}\nstringData: {key: "+secret+"}\n---\n"+
		strings.Replace(string(text), "  - name: worker\n",
			"  - name: worker\n    envFrom: [{secretRef: {name: shot}}]\n", 1))
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	now := time.Now()
	snapshot := filepath.Join(t.TempDir(), "snapshot.json")
	taken := m.at(t, now, "snapshot", "shot")
	if strings.Contains(taken, secret) {
		t.Error("the snapshot contains a secret")
	}
	if err := os.WriteFile(snapshot, []byte(taken), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"the same manifest": manifest,
		"another image": edited(t, manifest, "registry.local/podctl/demo:1\n    args: [log",
			"registry.local/podctl/demo:2\n    args: [log"),
		"another secret":   edited(t, manifest, secret, "other"),
		"another hostname": edited(t, manifest, "spec:\n", "spec:\n  hostname: other\n"),
	} {
		live := m.at(t, now, "plan", "-o", "json", path)
		recorded := m.at(t, now, "-r", "/nowhere.sock", "plan", "-o", "json", "--snapshot", snapshot, path)
		a, b := onePlan(t, live), onePlan(t, recorded)
		a.DesiredDigest, b.DesiredDigest = "", "" // The live digest is that of the stored Secret.
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s (-live +from the snapshot)\n%s", name, diff)
		}
	}
	live := m.at(t, now, "get", "-o", "json", "shot")
	recorded := m.at(t, now, "-r", "/nowhere.sock", "get", "--snapshot", snapshot, "-o", "json", "shot")
	if live != recorded {
		t.Errorf("get: live\n%s\nfrom the snapshot\n%s", live, recorded)
	}
	if text := m.at(t, now, "-r", "/nowhere.sock", "plan", "--snapshot", snapshot); !strings.Contains(text, "No changes") {
		t.Errorf("plan of the snapshot's own manifest:\n%s", text)
	}
	m.must(t, "delete", "shot")
}

// testSavedPlan: a saved plan is executed, but only if nothing has changed since.
func testSavedPlan(t *testing.T, m *machine) {
	manifest := edited(t, hello, "name: hello\n  labels:", "name: saved\n  labels:")
	file := filepath.Join(t.TempDir(), "plan.json")
	m.must(t, "plan", "--save", file, manifest)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the saved plan: %v %v", info, err)
	}
	m.must(t, "apply", "--plan", file, manifest)
	if r := m.run(t, "apply", "--plan", file, manifest); r.code != 1 || !strings.Contains(r.stderr, "sandbox ") ||
		!strings.Contains(r.stderr, "is out of date") {
		t.Errorf("the same plan again: exit code %d\n%s", r.code, r.stderr)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	changed := edited(t, manifest, "image: registry.local/podctl/demo:1\n    args: [log, --forever",
		"image: registry.local/podctl/demo:1\n    args: [log, --word, x, --forever")
	m.must(t, "plan", "--save", file, changed)
	if r := m.run(t, "apply", "--plan", file, manifest); r.code != 1 ||
		!strings.Contains(r.stderr, "manifest: spec.containers[worker].args") {
		t.Errorf("another manifest: exit code %d\n%s", r.code, r.stderr)
	}
	m.must(t, "delete", "saved")
}

const resizable = `apiVersion: v1
kind: Pod
metadata: {name: resize}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: registry.local/podctl/demo:1
    args: [log, --forever]
    resources: {limits: {memory: 64Mi, cpu: 200m}}
`

// testResize: CPU and memory change on the running container, and the removal of a limit needs a new container.
func testResize(t *testing.T, m *machine) {
	manifest := write(t, resizable)
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	before := m.ids(t, "resize")
	larger := edited(t, manifest, "memory: 64Mi, cpu: 200m", "memory: 128Mi, cpu: 400m")
	if r := m.must(t, "plan", larger); !strings.Contains(r.stdout, "update in place") ||
		!strings.Contains(r.stdout, "resources.limits.memory: 64Mi -> 128Mi") {
		t.Errorf("plan:\n%s", r.stdout)
	}
	m.must(t, "apply", larger)
	if after := m.ids(t, "resize"); !sameMap(before, after) {
		t.Error("the resize recreated the container")
	}
	if got := m.memoryLimit(t, before["app"]); got != 128<<20 {
		t.Errorf("memory limit %d, want 128Mi", got)
	}
	if p := m.plan(t, larger); !p.Complete {
		t.Errorf("after the resize the plan has steps %+v", p.Steps)
	}
	m.must(t, "apply", "--wait", "--timeout", "60s",
		edited(t, manifest, "memory: 64Mi, cpu: 200m", "memory: 32Mi, cpu: 100m"))
	if got := m.memoryLimit(t, before["app"]); got != 32<<20 {
		t.Errorf("memory limit %d, want 32Mi", got)
	}
	p := m.plan(t, edited(t, manifest, "memory: 64Mi, cpu: 200m", "memory: 32Mi"))
	if !hasKind(p, plan.RunSandbox) {
		t.Errorf("a change of the QoS class has steps %+v", p.Steps)
	}
	m.must(t, "delete", "resize")
}

func hasKind(p *plan.Plan, kind plan.Kind) bool {
	for i := range p.Steps {
		if p.Steps[i].Kind == kind {
			return true
		}
	}
	return false
}

func (m *machine) memoryLimit(t *testing.T, id string) int64 {
	t.Helper()
	reply, err := m.cri.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetStatus().GetResources().GetLinux().GetMemoryLimitInBytes()
}

// testDrift: the plan lists changes to the pod that others made.
func testDrift(t *testing.T, m *machine) {
	manifest := edited(t, hello, "name: hello\n  labels:", "name: drift\n  labels:")
	m.must(t, "apply", "--wait", "--timeout", "60s", manifest)
	ids := m.ids(t, "drift")
	stop := func(id string) {
		if _, err := m.cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
			t.Fatal(err)
		}
	}
	stop(ids["worker"])
	stop(ids["web"])
	_, err := m.cri.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: ids["web"]})
	if err != nil {
		t.Fatal(err)
	}
	m.createUnmanaged(t, m.readySandbox(t, "drift"))
	r := m.must(t, "plan", manifest)
	for _, want := range []string{
		"drift: container web (", "is gone: removed outside podctl", "drift: container worker (",
		"was stopped outside podctl", "drift: container unmanaged (", "is unmanaged",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the plan does not contain %q:\n%s", want, r.stdout)
		}
	}
	m.must(t, "apply", "--wait", "--ignore-backoff", "--timeout", "60s", manifest)
	if r := m.must(t, "plan", manifest); strings.Contains(r.stdout, "outside podctl") ||
		!strings.Contains(r.stdout, "unmanaged") {
		t.Errorf("after apply:\n%s", r.stdout)
	}
	m.must(t, "delete", "drift")
}

// createUnmanaged creates a container without labels in a pod's sandbox.
func (m *machine) createUnmanaged(t *testing.T, sandbox string) {
	t.Helper()
	_, err := m.cri.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "unmanaged"},
			Image:    &runtimeapi.ImageSpec{Image: "registry.local/podctl/demo:1"},
			Linux:    &runtimeapi.LinuxContainerConfig{},
		},
		SandboxConfig: &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: "drift", Namespace: v1.NamespaceDefault, Uid: "u"},
			Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: m.cgroupParent(t)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}
