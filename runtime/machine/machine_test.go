package machine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/doctor"
)

func TestKernel(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/sys/kernel/osrelease":                   "6.1.0\n",
		"proc/sys/user/max_user_namespaces":           "1000\n",
		"proc/sys/net/bridge/bridge-nf-call-iptables": "0\n",
		"proc/sys/net/ipv4/ip_forward":                "1\n",
		"proc/filesystems":                            "nodev\tproc\n\text4\nnodev\toverlay\n",
		"proc/self/status":                            "Name:\tx\nSeccomp:\t0\nCapEff:\t00ff\n",
		"proc/self/ns/net":                            "",
		"proc/self/ns/pid":                            "",
		"proc/self/ns/pid_for_children":               "",
		"lib/modules/6.1.0/modules.builtin":           "kernel/net/bridge/bridge.ko\n",
		"run/systemd/system/x":                        "",
	} {
		file := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want := doctor.Kernel{
		Release: "6.1.0", Overlay: true, Seccomp: true, Namespaces: []string{"net", "pid"}, UserNamespaces: 1000,
		Bridge: true, IPForward: true, Systemd: true,
	}
	if diff := cmp.Diff(want, Kernel(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(doctor.Kernel{}, Kernel(t.TempDir())); diff != "" {
		t.Errorf("a machine that shows nothing (-want +got):\n%s", diff)
	}
}

func TestMemTotal(t *testing.T) {
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "meminfo"), []byte("MemFree: 1 kB\nMemTotal:       16384 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := memTotal(proc); got != 16<<20 {
		t.Errorf("%d", got)
	}
	if got := memTotal(filepath.Join(proc, "absent")); got != 0 {
		t.Errorf("of a machine that shows nothing: %d", got)
	}
}

func TestHugePageSizes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"hugepages-1048576kB", "hugepages-2048kB", "hugepages-64kB"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"64KB", "2MB", "1GB"}, hugePageSizes(dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "hugepages-2048kB", "nr_hugepages"), []byte("16\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[v1.ResourceName]string{}
	for name, quantity := range hugePages(dir) {
		got[name] = quantity.String()
	}
	if diff := cmp.Diff(map[v1.ResourceName]string{"hugepages-64Ki": "0", "hugepages-2Mi": "32Mi", "hugepages-1Gi": "0"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
