package observe

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// TestAdoptedEndpoints checks that a pod moves here from a runtime that no longer has it, or does not listen. It stays
// if its processes still run, or if the runtime cannot answer.
func TestAdoptedEndpoints(t *testing.T) {
	old, _, oldEndpoint := runtimetest.Start(t, "i:1")
	l := newLab(t, "i:1")
	ref := model.RefOf(l.pod("web").Pod)
	check := func(name, from, want string) {
		t.Helper()
		err := l.observer.checkEndpoint(t.Context(), ref, &snapshot.Pod{Checkpoint: &state.Checkpoint{Endpoint: from}})
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	check("without the flag", oldEndpoint, "--adopt-endpoint")
	l.observer.AdoptEndpoint()
	check("it has nothing", oldEndpoint, "")
	check("its socket is gone", "unix:///absent/cri.sock", "")
	check("its socket is a directory", "unix://"+t.TempDir(), "")
	check("no listener", "unix://"+deadSocket(t), "")
	for _, systemd := range []bool{false, true} {
		node := l.host.Node()
		node.SystemdCgroup = systemd
		name := criconfig.CgroupParents(ref.UID, node)[1]
		l.cgroups.Occupy(name, 42)
		check("processes run in "+name, "unix:///absent/cri.sock", "pid [42]")
		l.cgroups.Occupy(name)
	}
	old.Fail(runtimetest.Fault{Method: "ListContainers", Times: 1, Err: status.Error(codes.Internal, "injected failure")})
	check("it cannot list them", oldEndpoint, "cannot list the sandboxes and containers of the pod: listing")
	client, err := cri.Connect(cri.Endpoint{Address: oldEndpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the test is over
	_, err = client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: string(ref.UID)}, Labels: UIDSelector(ref),
	}})
	if err != nil {
		t.Fatal(err)
	}
	check("it has a sandbox", oldEndpoint,
		"it answers, and has 1 sandboxes and containers of the pod: "+
			"delete the pod there first (podctl delete --runtime-endpoint "+
			oldEndpoint)
}

// deadSocket returns a socket without a listener.
func deadSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dead.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it is one
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
