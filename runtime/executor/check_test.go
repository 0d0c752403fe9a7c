package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestProofsChangeNothing: a container is proven without its sandbox, its volumes and its files,
// and none of those come to be.
func TestProofsChangeNothing(t *testing.T) {
	l := newLab(t, "i:1")
	text := pod("  containers: [{name: a, image: 'i:1', volumeMounts: [{name: v, mountPath: /v, subPath: s}]}]\n  volumes: [{name: v, emptyDir: {}}]\n")
	p := l.plan(model.PodRef{}, text)
	x := p.execution(Options{})
	if err := x.start.checkContainer(&plan.Step{Kind: plan.CheckContainer, Container: "a"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.layout.Pod(p.in.Pod.UID).Dir()); !os.IsNotExist(err) || len(l.server.Calls()) > 0 {
		t.Errorf("the pod's directory: %v, calls %v", err, l.server.Calls())
	}
}

// TestProofsThatFail: what keeps a container from being configured is written down under the
// kubelet's reason.
func TestProofsThatFail(t *testing.T) {
	for word, spec := range map[string]string{
		"image absent:1 is not present": "  containers: [{name: a, image: 'absent:1'}]\n",
		"not an absolute path":          "  containers: [{name: a, image: 'i:1', workingDir: data}]\n",
		"seccompProfile":                "  containers: [{name: a, image: 'i:1', securityContext: {seccompProfile: {type: Localhost, localhostProfile: missing.json}}}]\n",
	} {
		l := newLab(t, "i:1")
		x := l.plan(model.PodRef{}, pod(spec)).execution(Options{})
		err := x.start.checkContainer(&plan.Step{Kind: plan.CheckContainer, Container: "a"})
		if reasonOf(err, "") != "CreateContainerConfigError" || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v", word, err)
		}
		if e := x.checkpoint.checkpoint.StartErrors["a"]; e.Reason != "CreateContainerConfigError" || !strings.Contains(e.Message, word) {
			t.Errorf("%q: written down %+v", word, e)
		}
	}
}

// TestStartableConfigurations: what a runtime would refuse only after a stop is found before it.
func TestStartableConfigurations(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile.json")
	if err := os.WriteFile(profile, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	seccomp := func(kind runtimeapi.SecurityProfile_ProfileType, path string) *runtimeapi.ContainerConfig {
		return &runtimeapi.ContainerConfig{Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			Seccomp: &runtimeapi.SecurityProfile{ProfileType: kind, LocalhostRef: path},
		}}}
	}
	mount := func(mode runtimeapi.MountPropagation, path string) *runtimeapi.ContainerConfig {
		return &runtimeapi.ContainerConfig{Mounts: []*runtimeapi.Mount{{HostPath: path, ContainerPath: "/m", Propagation: mode}}}
	}
	for name, c := range map[string]struct {
		config *runtimeapi.ContainerConfig
		want   string
	}{
		"nothing":                      {&runtimeapi.ContainerConfig{}, ""},
		"a directory":                  {&runtimeapi.ContainerConfig{WorkingDir: "/data"}, ""},
		"a relative directory":         {&runtimeapi.ContainerConfig{WorkingDir: "data"}, "workingDir"},
		"a profile":                    {seccomp(runtimeapi.SecurityProfile_Localhost, profile), ""},
		"a profile that is missing":    {seccomp(runtimeapi.SecurityProfile_Localhost, profile+"x"), "seccompProfile"},
		"the runtime's own profile":    {seccomp(runtimeapi.SecurityProfile_RuntimeDefault, profile+"x"), ""},
		"a private mount":              {mount(runtimeapi.MountPropagation_PROPAGATION_PRIVATE, "/not/there"), ""},
		"a part that is not bound yet": {mount(runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL, "part"), ""},
		"a shared mount of nothing":    {mount(runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL, "/proc/self/not/there"), "mount at /m"},
	} {
		err := checkStartable(c.config)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestAddressesOfProofs: a proof has an address where the pod will get one, and none where it
// has the node's.
func TestAddressesOfProofs(t *testing.T) {
	for name, c := range map[string]struct {
		ips  []string
		host bool
		want int
	}{
		"its own": {[]string{"10.0.0.2", "fd00::2"}, false, 2}, "not yet": {nil, false, 1}, "the node's": {nil, true, 0},
	} {
		if got := knownOr(c.ips, &v1.Pod{Spec: v1.PodSpec{HostNetwork: c.host}}); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTargets: a container joins the processes of one that was started in this pass before those
// of an earlier run; a proof counts on a start of the plan.
func TestTargets(t *testing.T) {
	l := newLab(t, "i:1")
	ran := l.apply(onePod()).snapshot.Containers[0].Status.GetId()
	x := l.plan(model.PodRef{}, onePod()).execution(Options{}).start.inputs
	x.plan.Steps = []plan.Step{{ID: "start-b", Kind: plan.StartContainer, Container: "b"}}
	for name, c := range map[string]struct {
		target func(string) (string, error)
		of     string
		want   string
		failed bool
	}{
		"one that runs":         {x.Target, "a", ran, false},
		"one that will run":     {x.Target, "b", "", true},
		"proof: runs":           {proof{x}.Target, "a", ran, false},
		"proof: will run":       {proof{x}.Target, "b", "", false},
		"proof: will never run": {proof{x}.Target, "c", "", true},
	} {
		if got, err := c.target(c.of); got != c.want || (err != nil) != c.failed {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	x.outputs.setStarted("a", "anew")
	for name, target := range map[string]func(string) (string, error){"start": x.Target, "proof": proof{x}.Target} {
		if got, err := target("a"); got != "anew" || err != nil {
			t.Errorf("%s: of this pass %q, %v", name, got, err)
		}
	}
}
