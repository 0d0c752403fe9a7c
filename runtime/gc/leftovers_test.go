package gc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
)

func ours() map[string]string { return map[string]string{criconfig.AnnotationSandboxSpecHash: "v1:x"} }

// box returns a sandbox of podctl. A larger time means newer.
func box(id string, at int64, state runtimeapi.PodSandboxState) *runtimeapi.PodSandbox {
	return &runtimeapi.PodSandbox{
		Id: id, CreatedAt: at, State: state, Annotations: ours(),
		Metadata: &runtimeapi.PodSandboxMetadata{Namespace: "default", Name: "web", Uid: "u"},
	}
}

func record(id, name, sandbox string, at int64, state runtimeapi.ContainerState) *runtimeapi.Container {
	return &runtimeapi.Container{
		Id: id, PodSandboxId: sandbox, CreatedAt: at, State: state, Annotations: ours(),
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: uint32(at)},
	}
}

// TestGarbage checks that only objects of podctl that do not run and have a newer one are garbage.
func TestGarbage(t *testing.T) {
	const (
		ready, down               = runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		running, exited           = runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED
		created, unknown          = runtimeapi.ContainerState_CONTAINER_CREATED, runtimeapi.ContainerState_CONTAINER_UNKNOWN
		container, sandbox, files = "Container ", "Sandbox ", "Files "
	)
	later := func(c *runtimeapi.Container) *runtimeapi.Container { c.CreatedAt = 9; return c }
	foreign := func(c *runtimeapi.Container) *runtimeapi.Container { c.Annotations = nil; return c }
	for name, c := range map[string]struct {
		litter leftovers
		want   []string
	}{
		"the newest exited one stays, next to a running one": {leftovers{
			checkpoint: true, dir: true, sandboxes: []*runtimeapi.PodSandbox{box("s", 1, ready)},
			containers: []*runtimeapi.Container{
				record("a1", "a", "s", 1, exited), record("a3", "a", "s", 3, running),
				record("a2", "a", "s", 2, exited), record("b1", "b", "s", 1, exited),
			},
		}, []string{container + "a1"}},
		"the later attempt stays, when the clock was set back": {leftovers{
			checkpoint: true, sandboxes: []*runtimeapi.PodSandbox{box("s", 1, ready)},
			containers: []*runtimeapi.Container{later(record("a1", "a", "s", 1, exited)), record("a2", "a", "s", 2, exited)},
		}, []string{container + "a1"}},
		"objects of other programs stay": {leftovers{
			checkpoint: true, sandboxes: []*runtimeapi.PodSandbox{box("s", 1, ready)},
			containers: []*runtimeapi.Container{foreign(record("a1", "a", "s", 1, exited)), record("a2", "a", "s", 2, exited)},
		}, nil},
		"a sandbox is removed with its last record, the newest stays": {leftovers{
			checkpoint: true, sandboxes: []*runtimeapi.PodSandbox{box("s1", 1, down), box("s2", 2, down), box("s3", 3, down)},
			containers: []*runtimeapi.Container{record("a1", "a", "s1", 1, exited), record("a2", "a", "s2", 2, exited)},
		}, []string{container + "a1", sandbox + "s1"}},
		"an old sandbox that is ready stays": {leftovers{
			checkpoint: true, sandboxes: []*runtimeapi.PodSandbox{box("s1", 1, ready), box("s2", 2, ready)},
		}, nil},
		"without a checkpoint everything is removed": {leftovers{
			dir: true, sandboxes: []*runtimeapi.PodSandbox{box("s1", 1, ready), box("s2", 2, down)},
			containers: []*runtimeapi.Container{record("a1", "a", "s1", 1, exited), record("a2", "a", "s1", 2, created)},
		}, []string{sandbox + "s2", sandbox + "s1", files + ""}},
		"unless something runs": {leftovers{
			dir: true, sandboxes: []*runtimeapi.PodSandbox{box("s1", 1, ready), box("s2", 2, down)},
			containers: []*runtimeapi.Container{record("a1", "a", "s1", 1, exited), record("a2", "a", "s1", 2, running)},
		}, []string{sandbox + "s2"}},
		"or may run": {leftovers{
			dir:        true,
			sandboxes:  []*runtimeapi.PodSandbox{box("s1", 1, ready)},
			containers: []*runtimeapi.Container{record("a1", "a", "s1", 1, unknown)},
		}, nil},
		"or is in use": {leftovers{
			dir:        true,
			sandboxes:  []*runtimeapi.PodSandbox{box("s1", 1, ready)},
			containers: []*runtimeapi.Container{foreign(record("a1", "a", "s1", 1, exited))},
		}, nil},
		"files of a pod that is gone":           {leftovers{dir: true}, []string{files}},
		"which may be a kubelet's":              {leftovers{dir: true, shared: true}, nil},
		"files of a pod that is only not there": {leftovers{dir: true, checkpoint: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range c.litter.garbage() {
				got = append(got, string(g.Kind)+" "+g.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUnmanagedPodsAreLeftAlone(t *testing.T) {
	s := box("s", 1, runtimeapi.PodSandboxState_SANDBOX_NOTREADY)
	s.Annotations = map[string]string{"io.kubernetes.x": "io.podctl."}
	for want, l := range map[bool]*leftovers{
		true:  {sandboxes: []*runtimeapi.PodSandbox{s}},
		false: {dir: true},
	} {
		if l.unmanaged() != want {
			t.Errorf("%+v: foreign is %t", l, !want)
		}
	}
}
