package diagnose

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/doctor"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// TestRuntimeInfo reads recorded verbose status of containerd.
func TestRuntimeInfo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "10-net.conflist"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info := cri.ReadInfo(map[string]string{
		"config": `{"containerd":{"defaultRuntimeName":"runc",` +
			`"runtimes":{"old":{"options":null},"runc":{"options":{"SystemdCgroup":true}}}},` +
			`"registry":{"configs":{"x":{"auth":{"password":"hidden"}}}},` +
			`"containerdRootDir":"/var/lib/containerd","sandboxImage":"registry.local/pause:1"}`,
		"cniconfig": `{"PluginDirs":["` + dir + `"],"PluginConfDir":"` + dir + `","Networks":[` +
			`{"Config":{"Name":"cni-loopback","Plugins":[{"Network":{"type":"loopback","ipam":{}}}]}},` +
			`{"Config":{"Name":"net","Plugins":[` +
			`{"Network":{"type":"bridge","ipam":{"type":"host-local"}}},{"Network":{"type":"portmap"}}]}}]}`,
	})
	if !info.Config.Containerd.Runtimes["runc"].Options.SystemdCgroup ||
		info.Config.Root != "/var/lib/containerd" || info.Config.SandboxImage != "registry.local/pause:1" {
		t.Errorf("%+v", info.Config)
	}
	want := &doctor.CNI{
		ConfDir: dir, Configs: []string{"10-net.conflist"}, PluginDirs: []string{dir}, Networks: []string{"net"},
		Wanted: []string{"bridge", "host-local", "loopback", "portmap"}, Installed: []string{"10-net.conflist"},
	}
	if diff := cmp.Diff(want, network(&info)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := cri.ReadInfo(map[string]string{"config": "not JSON"})
	if network(&other) != nil {
		t.Error("a runtime without conditions has a network")
	}
}

func TestDiagnoseWithoutARuntime(t *testing.T) {
	layout := state.Layout{Root: filepath.Join(t.TempDir(), "state")}
	_, err := cri.Connect(cri.Endpoint{Address: "unix:///absent.sock", Origin: "test"}, "", time.Second)
	f := Diagnose(t.Context(), Diagnosis{Err: err, Layout: layout, Now: time.Unix(1, 0)})
	if f.Runtime != nil || f.Endpoint.Origin != "test" || !strings.Contains(f.Endpoint.Problem, "no such socket") || len(f.Disks) != 1 {
		t.Errorf("%+v", f)
	}
}

func TestDiagnoseOfARuntimeThatHangs(t *testing.T) {
	client, err := cri.Connect(cri.Endpoint{Address: "unix://" + silentSocket(t), Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("too slow"))
	defer cancel()
	f := Diagnose(ctx, Diagnosis{Client: client, Layout: state.Layout{Root: t.TempDir()}, Now: time.Unix(1, 0)})
	if f.Runtime == nil || !strings.HasPrefix(f.Runtime.Problem, "too slow") {
		t.Errorf("%+v", f.Runtime)
	}
}

// TestSandboxImage checks that the image is found by the runtime's name for it. A runtime that neither names nor pins
// one gives a result only if it is containerd.
func TestSandboxImage(t *testing.T) {
	_, _, endpoint := runtimetest.Start(t, "i:1")
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for _, c := range []struct {
		runtime, name string
		want          *doctor.SandboxImage
	}{
		{"containerd", "i:1", &doctor.SandboxImage{Name: "i:1", Present: true}},
		{"containerd", "absent:1", &doctor.SandboxImage{Name: "absent:1"}},
		{"containerd", "", &doctor.SandboxImage{}},
		{"cri-o", "", nil},
	} {
		if diff := cmp.Diff(c.want, sandboxImage(t.Context(), client, c.runtime, c.name)); diff != "" {
			t.Errorf("%s %q: (-want +got)\n%s", c.runtime, c.name, diff)
		}
	}
}

// silentSocket listens on a unix socket and never answers.
func silentSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}
