package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/kubeletconf"
)

// TestExportNode exports the settings of a configuration, and examines the result: podctl needs the same settings.
func TestExportNode(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "podctl.yaml")
	text := "node-labels: disk=ssd\nmax-pods: 60\nagent:\n  kubeconfig: /k\n  node-name: n1\n  cluster-dns: [10.96.0.10]\n  sources: [/etc/pods, /more]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, "", "export", "--node", "--config", config, "-r", "/absent.sock")
	for _, want := range []string{
		"--kubeconfig=/k", "--hostname-override=n1", "--node-labels=disk=ssd", "--root-dir=/", "no agent runs", "/more is left out",
		"set cgroupDriver",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing in the notes", want)
		}
	}
	if code != exit.OK || !strings.Contains(stdout, "\nmaxPods: 60\n") || !strings.Contains(stdout, "\nstaticPodPath: /etc/pods\n") || t.Failed() {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	kubelet := filepath.Join(dir, "kubelet.yaml")
	if err := os.WriteFile(kubelet, []byte(stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ = call(t, "", "doctor", "--node", "--kubelet-args", "--kubeconfig=/k --hostname-override=n1 --node-labels=disk=ssd", kubelet)
	if code != exit.OK || !strings.Contains(stdout, "\nmax-pods: 60\n") || !strings.Contains(stdout, "  cluster-dns: 10.96.0.10\n") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if code, _, _ = call(t, "", "export", "--node", "web"); code != exit.Error {
		t.Errorf("a pod and --node: exit code %d", code)
	}
}

// TestLostNotes names the settings of a kubelet that do not come back from podctl.
func TestLostNotes(t *testing.T) {
	files := kubeletconf.NewFiles()
	if notes := lostNotes(files); len(notes) != 1 || !strings.HasPrefix(notes[0], "settings that podctl does not have are not in this") {
		t.Error(notes)
	}
	if err := files.Add("k.yaml", []byte(kubeletHeader+"reservedSystemCPUs: 0-1\nmaxPods: 60\ncpuManagerPolicy: static\nrunOnce: true\n")); err != nil {
		t.Fatal(err)
	}
	if notes := lostNotes(files); len(notes) != 1 || !strings.Contains(notes[0], ": cpuManagerPolicy, reservedSystemCPUs, runOnce (") {
		t.Error(notes)
	}
	files = kubeletconf.NewFiles()
	if err := files.Add("k.yaml", []byte(kubeletHeader+"maxPods: 60\n")); err != nil || lostNotes(files) != nil {
		t.Error(err, lostNotes(files))
	}
}
