package machine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFindKubelet(t *testing.T) {
	cases := map[string]struct {
		comm, cmdline, endpoint string
		want                    bool
	}{
		"its standard runtime": {"kubelet", "kubelet", "unix:///run/containerd/containerd.sock", true},
		"by way of /var/run":   {"kubelet", "kubelet", "unix:///var/run/containerd/containerd.sock", true},
		"another runtime":      {"kubelet", "kubelet", "unix:///var/lib/podctl/node/containerd.sock", false},
		"by flag": {
			"kubelet",
			"kubelet\x00--container-runtime-endpoint=unix:///run/x.sock",
			"unix:///run/x.sock",
			true,
		},
		"by flag, apart": {
			"kubelet",
			"kubelet\x00--container-runtime-endpoint\x00unix:///run/x.sock",
			"unix:///run/x.sock",
			true,
		},
		"by flag, another": {
			"kubelet",
			"kubelet\x00--container-runtime-endpoint=unix:///run/x.sock",
			"unix:///run/containerd/containerd.sock",
			false,
		},
		"by a file of its directory":   {"kubelet", "kubelet\x00--config=kubelet.yaml", "unix:///run/own.sock", true},
		"by a file of its root":        {"kubelet", "kubelet\x00--config=/kubelet.yaml", "unix:///run/inner.sock", true},
		"by an endless file":           {"kubelet", "kubelet\x00--config=/endless", "unix:///run/containerd/containerd.sock", true},
		"a distribution":               {"k3s-server", "k3s", "unix:///run/k3s/containerd/containerd.sock", true},
		"something else with the name": {"kubelet-exporter", "kubelet", "unix:///run/containerd/containerd.sock", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			dir := filepath.Join(proc, "42")
			if err := errors.Join(
				os.MkdirAll(filepath.Join(dir, "root/own"), 0o700),
				os.Symlink("/own", filepath.Join(dir, "cwd")),
				inNamespace(proc, "self"), inNamespace(proc, "42"),
				os.WriteFile(filepath.Join(dir, "root/own/kubelet.yaml"), []byte("containerRuntimeEndpoint: unix:///run/own.sock\n"), 0o600),
				os.WriteFile(filepath.Join(dir, "root/kubelet.yaml"), []byte("containerRuntimeEndpoint: /run/inner.sock\n"), 0o600),
				unix.Mkfifo(filepath.Join(dir, "root/endless"), 0o600),
				os.WriteFile(filepath.Join(dir, "exe"), nil, 0o600),
				os.WriteFile(filepath.Join(dir, "comm"), []byte(c.comm+"\n"), 0o600),
				os.WriteFile(filepath.Join(dir, "cmdline"), []byte(c.cmdline), 0o600),
				os.Mkdir(filepath.Join(proc, "sys"), 0o700),
			); err != nil {
				t.Fatal(err)
			}
			k, found := FindKubelet(proc, c.endpoint)
			if found != c.want || (found && (k.PID != 42 || k.Process != c.comm)) {
				t.Errorf("found %t, %+v", found, k)
			}
		})
	}
}

// inNamespace puts a process into the only mount namespace of a test.
func inNamespace(proc, pid string) error {
	dir := filepath.Join(proc, pid, "ns")
	return errors.Join(os.MkdirAll(dir, 0o700), os.Symlink("mnt:[1]", filepath.Join(dir, "mnt")))
}

// TestKubeletInContainer checks that sockets are compared as files: a kubelet in a container can have the socket of this
// machine, or one of its own with the same name. Processes of other users do not count.
func TestKubeletInContainer(t *testing.T) {
	proc, sockets := t.TempDir(), t.TempDir()
	socket, root := filepath.Join(sockets, "x.sock"), filepath.Join(proc, "42/root")
	inner := filepath.Join(root, socket)
	if err := errors.Join(
		os.WriteFile(socket, nil, 0o600),
		os.MkdirAll(filepath.Dir(inner), 0o700),
		os.Link(socket, inner),
		os.Symlink(socket, filepath.Join(root, "link")),
		os.WriteFile(filepath.Join(proc, "42/exe"), nil, 0o600),
		os.WriteFile(filepath.Join(proc, "42/comm"), []byte("kubelet\n"), 0o600),
		os.WriteFile(filepath.Join(proc, "42/cmdline"), []byte("kubelet\x00--container-runtime-endpoint=unix:///link"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	if _, found := FindKubelet(proc, "unix://"+socket); !found {
		t.Error("not found with the same socket")
	}
	if err := errors.Join(os.Remove(inner), os.WriteFile(inner, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if k, found := FindKubelet(proc, "unix://"+socket); found {
		t.Errorf("found %+v with another socket", k)
	}
	if err := os.Remove(inner); err != nil {
		t.Fatal(err)
	}
	if k, found := FindKubelet(proc, "unix://"+socket); found {
		t.Errorf("found %+v without a socket", k)
	}
	pod := filepath.Join(proc, "42/cgroup")
	if err := errors.Join(os.Link(socket, inner), os.WriteFile(pod, []byte("1:cpu:/kubepods/podu/c\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if k, found := FindKubelet(proc, "unix://"+socket); found {
		t.Errorf("found %+v of a pod", k)
	}
	if err := os.Remove(pod); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(proc, "42"), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if k, found := FindKubelet(proc, "unix://"+socket); found {
			t.Errorf("found %+v of another user", k)
		}
	}
}

// TestOwnKubelet finds the kubelet of this mount namespace, but none in a container, none of several, and no other
// program under its name.
func TestOwnKubelet(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, comm, namespace, parent string) {
		dir := filepath.Join(proc, pid)
		if err := errors.Join(
			os.MkdirAll(filepath.Join(dir, "ns"), 0o700),
			os.WriteFile(filepath.Join(dir, "comm"), []byte(comm+"\n"), 0o600),
			os.WriteFile(filepath.Join(dir, "status"), []byte("Name:\tx\nPPid:\t"+parent+"\n"), 0o600),
			os.WriteFile(filepath.Join(dir, "exe"), nil, 0o700), //nolint:gosec // It is a program.
			os.Symlink("mnt:["+namespace+"]", filepath.Join(dir, "ns/mnt")),
			os.Symlink("cgroup:["+namespace+"]", filepath.Join(dir, "ns/cgroup")),
		); err != nil {
			t.Fatal(err)
		}
	}
	process("self", "podctl", "1", "1")
	process("7", "k0s", "1", "1")
	process("8", "kubelet", "2", "7")
	if pid, _, found := OwnKubelet(proc); found {
		t.Errorf("found %d in a container", pid)
	}
	if k, found := KubeletOfCgroups(proc); !found || k.Process != "k0s" {
		t.Errorf("found %+v with the same cgroups: %t", k, found)
	}
	process("9", "kubelet", "1", "7")
	setMode := func(mode os.FileMode) {
		if err := os.Chmod(filepath.Join(proc, "9", "exe"), mode); err != nil {
			t.Fatal(err)
		}
	}
	setMode(0o700 | os.ModeSetuid)
	if pid, _, found := OwnKubelet(proc); found {
		t.Errorf("found %d, which any user can start", pid)
	}
	setMode(0o700)
	if pid, parent, found := OwnKubelet(proc); !found || pid != 9 || parent != "k0s" {
		t.Errorf("found %d of %q: %t", pid, parent, found)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(proc, "9"), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if pid, _, found := OwnKubelet(proc); found {
			t.Errorf("found %d of another user", pid)
		}
	}
	process("10", "kubelet", "1", "1")
	process("11", "kubelet", "1", "1")
	if pid, _, found := OwnKubelet(proc); found {
		t.Errorf("found %d of several", pid)
	}
	if err := os.RemoveAll(filepath.Join(proc, "11")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(proc, "9")); err != nil {
		t.Fatal(err)
	}
	if pid, parent, found := OwnKubelet(proc); !found || pid != 10 || parent != "" {
		t.Errorf("found %d of %q: %t", pid, parent, found)
	}
}
