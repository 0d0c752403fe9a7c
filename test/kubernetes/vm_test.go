package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// vmPatience limits each wait for an emulated machine, which is ten to fifty times slower than this one.
	vmPatience = 30 * time.Minute
	// vmServer is the API server, as the emulated machine sees it.
	vmServer = "https://10.0.2.2:6443"
	vmIP     = "10.0.2.15"
)

// vm is an emulated Debian 13 with systemd and cgroup v2, built by hack/vm/image.sh. Its disk keeps its content.
type vm struct {
	// t is the test in which all boots happen.
	t   *testing.T
	api *apiServer
	// image has the kernel, dir the disk, and share is /mnt/share in the machine.
	image, dir, share string
	// memory is in MiB.
	memory int
	qemu   *process
	calls  int
}

// vmLoop runs in the machine after its boot. It runs each script that appears in the shared directory.
const vmLoop = `exec >/dev/null 2>&1
cd /mnt/share
touch up
while :; do
	for f in todo/*.sh; do
		[ -e "$f" ] || continue
		name=$(basename "$f" .sh)
		sh "$f" >"done/$name.out" 2>&1
		echo $? >"done/$name.part"
		rm "$f"
		mv "done/$name.part" "done/$name.code"
	done
	sleep 1
done
`

// vmSetUp makes the machine a node. The agent and containerd are units of the package. Before them, a unit copies the
// records of podctl as the last boot left them.
const vmSetUp = `set -e
systemctl mask --now containerd.service
dpkg -i /mnt/share/files/*.deb
mkdir -p /opt/node
cp /mnt/share/files/* /opt/node
ln -s /opt/node/containerd /opt/node/containerd-shim-runc-v2 /usr/local/bin
cp /mnt/share/kubeconfig /etc/podctl/kubeconfig
chmod 600 /etc/podctl/kubeconfig
cat >/etc/podctl/config.yaml <<END
agent:
  kubeconfig: /etc/podctl/kubeconfig
  node-name: ` + nodeName + `
  node-ip: ` + vmIP + `
  authorization-mode: AlwaysAllow
END
cat >/etc/systemd/system/records.service <<END
[Unit]
Description=Copy the records as they are after the boot
Before=podctl-containerd.service podctl-agent.service
RequiresMountsFor=/var/lib/podctl
[Service]
Type=oneshot
ExecStart=/bin/tar --exclude=./node --exclude=./pods/*/volumes -C /var/lib/podctl -cf /run/records.tar .
[Install]
WantedBy=multi-user.target
END
systemctl enable records.service podctl-agent.service
systemctl enable --now podctl-containerd.service
podctl node up --load /opt/node/demo.tar
systemctl start podctl-agent.service
sync
`

// newVM boots a new machine, and makes it a node of the API server.
func newVM(t *testing.T, api *apiServer, memory int) *vm {
	t.Helper()
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	m := bootVM(t, api, memory, setting(t, "VM_PACKAGE"), filepath.Join(programs.images, "demo.tar"))
	m.run(t, vmSetUp)
	m.awaitNode(t)
	return m
}

// bootVM boots a new machine with the programs of containerd, a kubelet and other files in /mnt/share/files.
func bootVM(t *testing.T, api *apiServer, memory int, files ...string) *vm {
	t.Helper()
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m := &vm{t: t, api: api, image: setting(t, "VM_MACHINE"), dir: dir, share: filepath.Join(dir, "share"), memory: memory}
	// QEMU forwards what the API server sends to this address. The source must be another one than that of the machine.
	route := exec.CommandContext(t.Context(), "ip", "route", "replace", "local", vmIP, "dev", "lo", "src", "127.0.0.1")
	if out, err := route.CombinedOutput(); err != nil {
		t.Fatalf("adding a route: %v: %s", err, out)
	}
	m.copy(t, m.disk(), filepath.Join(m.image, "root.ext4"))
	write(t, filepath.Join(m.share, "guest.sh"), vmLoop)
	containerd := filepath.Join(filepath.Dir(programs.containerd), "containerd")
	for _, path := range append(files, containerd, containerd+"-shim-runc-v2", setting(t, "KUBELET_BIN")) {
		m.copy(t, filepath.Join(m.share, "files", filepath.Base(path)), path)
	}
	config := read(t, api.kubeconfig(t, m.share))
	write(t, filepath.Join(m.share, "kubeconfig"), strings.ReplaceAll(config, serverURL, vmServer))
	m.boot(t)
	return m
}

func (m *vm) disk() string { return filepath.Join(m.dir, "disk") }

func (m *vm) copy(t *testing.T, to, from string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copying %s: %v: %s", from, err, out)
	}
}

// power starts the machine.
func (m *vm) power(t *testing.T) {
	t.Helper()
	for _, name := range []string{"todo", "done", "up"} {
		if err := os.RemoveAll(filepath.Join(m.share, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"todo", "done"} {
		if err := os.Mkdir(filepath.Join(m.share, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Only these drivers are loaded, because loading one for each device takes half a minute.
	kernel := "root=/dev/vda rw console=ttyS0 quiet mitigations=off systemd.mask=systemd-udev-trigger.service " +
		"modules_load=virtio_net,virtio_console,9pnet_virtio"
	cmd := exec.Command( //nolint:noctx // it is killed
		"qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-m", strconv.Itoa(m.memory), "-smp", vmProcessors(), "-display", "none", "-monitor", "none",
		"-kernel", filepath.Join(m.image, "kernel"), "-initrd", filepath.Join(m.image, "initrd"), "-append", kernel,
		"-drive", "file="+m.disk()+",format=raw,if=virtio",
		"-virtfs", "local,path="+m.share+",mount_tag=share,security_model=none",
		"-nic", "user,model=virtio-net-pci,hostfwd=tcp:"+vmIP+":10250-:10250", "-serial", "file:"+filepath.Join(m.dir, "console.log"),
	)
	m.qemu = start(m.t, filepath.Join(m.dir, "qemu.log"), cmd)
}

// vmProcessors is the number of processors of each machine.
func vmProcessors() string {
	if n := os.Getenv("VM_PROCESSORS"); n != "" {
		return n
	}
	return "2"
}

// boot starts the machine, and waits until its units are started.
func (m *vm) boot(t *testing.T) {
	t.Helper()
	began := time.Now()
	m.power(t)
	m.until(t, func() string {
		if _, err := os.Stat(filepath.Join(m.share, "up")); err != nil {
			return "the machine has not booted"
		}
		return ""
	})
	t.Logf("the machine has booted after %s", time.Since(began).Round(time.Second))
}

// try runs a script in the machine, and returns its output and its exit code.
func (m *vm) try(t *testing.T, script string) (output string, code int) {
	t.Helper()
	m.calls++
	name := strconv.Itoa(m.calls)
	part := filepath.Join(m.share, "todo", name+".part")
	write(t, part, script)
	if err := os.Rename(part, filepath.Join(m.share, "todo", name+".sh")); err != nil {
		t.Fatal(err)
	}
	result := filepath.Join(m.share, "done", name)
	m.until(t, func() string {
		if _, err := os.Stat(result + ".code"); err != nil {
			return "this script has not ended:\n" + script
		}
		return ""
	})
	if _, err := fmt.Sscan(read(t, result+".code"), &code); err != nil {
		t.Fatal(err)
	}
	return read(t, result+".out"), code
}

// run runs a script that must succeed.
func (m *vm) run(t *testing.T, script string) string {
	t.Helper()
	output, code := m.try(t, script)
	if code != 0 {
		t.Fatalf("exit code %d of\n%s\n%s", code, script, output)
	}
	return output
}

// until calls asked until it returns an empty string.
func (m *vm) until(t *testing.T, asked func() string) {
	t.Helper()
	end := time.Now().Add(vmPatience)
	for missing := asked(); missing != ""; missing = asked() {
		m.qemu.alive(t)
		if time.Now().After(end) {
			t.Fatalf("after %s: %s\n%s", vmPatience, missing, m.console())
		}
		time.Sleep(time.Second)
	}
}

func (m *vm) console() string {
	text, err := os.ReadFile(filepath.Join(m.dir, "console.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// awaitNode waits until the node is ready.
func (m *vm) awaitNode(t *testing.T) {
	t.Helper()
	m.until(t, func() string {
		if ready := m.api.nodeReady(t); ready != "True" {
			return fmt.Sprintf("condition Ready of the node is %q", ready)
		}
		return ""
	})
}
