package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/plan"
)

func TestLiveKubeletIsSeen(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(config, []byte("containerRuntimeEndpoint: unix:///run/other.sock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		comm, cmdline, endpoint string
		want                    bool
	}{
		"its standard runtime":         {"kubelet", "kubelet", "unix:///run/containerd/containerd.sock", true},
		"by way of /var/run":           {"kubelet", "kubelet", "unix:///var/run/containerd/containerd.sock", true},
		"another runtime":              {"kubelet", "kubelet", "unix:///var/lib/podctl/node/containerd.sock", false},
		"by flag":                      {"kubelet", "kubelet\x00--container-runtime-endpoint=unix:///run/x.sock", "unix:///run/x.sock", true},
		"by flag, apart":               {"kubelet", "kubelet\x00--container-runtime-endpoint\x00unix:///run/x.sock", "unix:///run/x.sock", true},
		"by flag, another":             {"kubelet", "kubelet\x00--container-runtime-endpoint=unix:///run/x.sock", "unix:///run/containerd/containerd.sock", false},
		"by file":                      {"kubelet", "kubelet\x00--config=" + config, "unix:///run/other.sock", true},
		"a distribution":               {"k3s-server", "k3s", "unix:///run/k3s/containerd/containerd.sock", true},
		"something else with the name": {"kubelet-exporter", "kubelet", "unix:///run/containerd/containerd.sock", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			dir := filepath.Join(proc, "42")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "comm"), []byte(c.comm+"\n"), 0o600),
				os.WriteFile(filepath.Join(dir, "cmdline"), []byte(c.cmdline), 0o600), os.Mkdir(filepath.Join(proc, "sys"), 0o700)); err != nil {
				t.Fatal(err)
			}
			err := checkKubelet(proc, c.endpoint)
			live := (*LiveKubeletError)(nil)
			if errors.As(err, &live) != c.want {
				t.Fatalf("error %v", err)
			}
			if c.want && (live.PID != 42 || !strings.Contains(err.Error(), "--allow-kubelet")) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestLiveKubeletKeepsPassesFromChanging: beside a kubelet nothing is started and nothing
// written down, unless the user allows it; what needs no change and what takes a pod away
// is done.
func TestLiveKubeletKeepsPassesFromChanging(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	d := f.load(tripPod("web"))
	f.engine.kubelet = func() error { return &LiveKubeletError{Process: "kubelet", PID: 42} }
	refused := func(want bool, opts Options) {
		t.Helper()
		_, err := f.engine.Apply(t.Context(), d, opts)
		if live := (*LiveKubeletError)(nil); errors.As(err, &live) != want || (!want && err != nil) {
			t.Errorf("error %v, want a refusal: %v", err, want)
		}
	}
	f.proxy.Reset()
	refused(true, Options{})
	if calls := f.proxy.Calls(); slices.Contains(calls, "RunPodSandbox") {
		t.Errorf("a refused pass made the calls %v", calls)
	}
	if journal, err := f.layout.Pod(d.Pod.UID).ReadJournal(); err != nil || journal.Applied != nil {
		t.Errorf("a refused pass wrote down that it was applied: %v", err)
	}
	refused(false, Options{AllowKubelet: true})
	refused(false, Options{})
	if _, err := f.engine.Delete(t.Context(), plan.RefOf(d.Pod), Options{}); err != nil {
		t.Error(err)
	}
}
