package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lossPatience limits each wait for a node that has lost its power.
	lossPatience = 10 * time.Minute
	// lossIP is the address of the node, and lossGateway that of the API server.
	lossIP, lossGateway = "198.51.100.2", "198.51.100.1"
	lossPort            = "6444"
	// ioctl numbers of ext4: EXT4_IOC_SHUTDOWN, and its flag to write nothing more, also not to the journal.
	ext4Shutdown, ext4NoLogFlush = 0x8004587d, 2
)

// lossInit is the first process of the namespaces of the node. Its arguments are podctl, containerd, the directory of
// the images, the kubeconfig and the directory of manifests.
const lossInit = `set -e
mount --make-rprivate / && mount --make-rshared /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir /run/netns
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
ip link set lo up
until ip addr add ` + lossIP + `/24 dev eth0 2>/dev/null; do sleep 0.1; done
ip link set eth0 up
ip route add default via ` + lossGateway + `
echo 1 >/proc/sys/net/ipv4/ip_forward
if [ -e ` + stateDir + `/loaded ]; then
	"$1" node up
else
	"$1" node up --containerd "$2" --load "$3/pause.tar" --load "$3/demo.tar"
	"$1" image tag ` + firstImage + ` ` + secondImage + `
	touch ` + stateDir + `/loaded
	sync
fi
"$1" agent --kubeconfig "$4" --node-name ` + nodeName + ` --node-ip ` + lossIP + ` --authorization-mode AlwaysAllow \
	--eviction=false "$5" &
wait $!
echo "the agent has ended with $?"
`

// lossNode is podctl with its containerd in namespaces of their own. Its state directory is a file system that can lose
// what was not written to the disk.
type lossNode struct {
	needed

	// t is the test in which all boots happen.
	t *testing.T
	// disk is a file with the file system, log the output of the programs, and manifests has static pods.
	disk, log, kubeconfig, manifests string
	init                             *process
	// position is that in the log at the last boot, and files are the records at that time.
	position int
	files    map[string]string
}

// TestPowerLoss ends a node at random moments, with the content of its disk that a loss of power would leave.
func TestPowerLoss(t *testing.T) {
	n, err := given()
	if err != nil {
		t.Fatal(err)
	}
	api := (&node{needed: n}).startServer(t)
	loseOften(t, api, 20*time.Second, func() machine { return newLossNode(t, n, api) })
}

func newLossNode(t *testing.T, n needed, api *apiServer) *lossNode {
	t.Helper()
	dir := t.TempDir()
	m := &lossNode{
		needed: n, t: t, disk: filepath.Join(dir, "disk"), log: filepath.Join(dir, "node.log"),
		kubeconfig: filepath.Join(dir, "kubeconfig"), manifests: filepath.Join(dir, "manifests"),
	}
	config := read(t, api.kubeconfig(t, t.TempDir()))
	write(t, m.kubeconfig, strings.ReplaceAll(config, serverURL, "https://"+net.JoinHostPort(lossGateway, lossPort)))
	write(t, filepath.Join(m.manifests, "static.yaml"), lossStatic)
	forward(t, ":"+lossPort, strings.TrimPrefix(serverURL, "https://"))
	must(t, "truncate", "-s", "2G", m.disk)
	must(t, "mke2fs", "-q", "-t", "ext4", m.disk)
	must(t, "mkdir", "-p", stateDir)
	t.Cleanup(func() { m.lose(t) })
	m.boot(t)
	return m
}

// must runs a program of the machine.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput() //nolint:noctx // it is short
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// forward passes connections on to another address.
func forward(t *testing.T, from, to string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
		}
	}()
}

// power mounts the disk, and starts the programs.
func (m *lossNode) power(t *testing.T) {
	t.Helper()
	must(t, "mount", "-o", "loop", m.disk, stateDir)
	must(t, "chmod", "700", stateDir)
	m.files = filesOf(t, stateDir)
	if text, err := os.ReadFile(m.log); err == nil {
		m.position = len(text)
	}
	args := []string{"-c", lossInit, "node", m.podctl, m.containerd, m.images, m.kubeconfig, m.manifests}
	cmd := exec.Command("sh", args...) //nolint:noctx // it is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	m.init = start(m.t, m.log, cmd)
	must(t, "ip", "link", "add", "node", "type", "veth", "peer", "name", "eth0", "netns", m.pid())
	must(t, "ip", "addr", "add", lossGateway+"/24", "dev", "node")
	must(t, "ip", "link", "set", "node", "up")
}

func (m *lossNode) pid() string { return strconv.Itoa(m.init.cmd.Process.Pid) }

// filesOf reads all regular files of podctl in the state directory.
func filesOf(t *testing.T, top string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(top, path)
		switch {
		case err != nil:
			return err
		case name == "node" || entry.Name() == "volumes" || name == "lost+found":
			return fs.SkipDir
		case entry.Type().IsRegular():
			text, err := os.ReadFile(path)
			found[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// boot also waits until the agent responds.
func (m *lossNode) boot(t *testing.T) {
	t.Helper()
	m.power(t)
	m.until(t, func() string {
		out, err := m.command("podctl agent status").CombinedOutput()
		if err != nil {
			return fmt.Sprintf("podctl agent status: %v: %s", err, out)
		}
		return ""
	})
}

// lose kills all processes, and stops the file system before it writes anything more to the disk.
func (m *lossNode) lose(t *testing.T) {
	t.Helper()
	if m.init == nil {
		return
	}
	if m.init.cmd != nil {
		m.init.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-m.init.ended
		m.init.cmd = nil
	}
	m.init = nil
	dir, err := os.Open(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.IoctlSetPointerInt(int(dir.Fd()), ext4Shutdown, ext4NoLogFlush)
	if err = errors.Join(err, dir.Close(), unix.Unmount(stateDir, 0)); err != nil {
		t.Fatal(err)
	}
	until(t, func() string { return must(t, "losetup", "-j", m.disk) })
	_ = exec.Command("ip", "link", "del", "node").Run() //nolint:noctx // the kernel may have removed it
	until(t, func() string {
		_ = exec.Command("sh", "-c", //nolint:noctx // it is short
			"find "+cgroupsDir+" -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null").Run()
		return must(t, "find", cgroupsDir, "-type", "d", "-path", "*/kubepods*")
	})
}

// command is a script in the namespaces of the node.
func (m *lossNode) command(script string) *exec.Cmd {
	script = strings.ReplaceAll(script, "podctl ", m.podctl+" ")
	args := []string{"-t", m.pid(), "-m", "-n", "-p", "-i", "-u", "sh", "-ec", script}
	return exec.Command("nsenter", args...) //nolint:noctx // it ends with the node
}

func (m *lossNode) run(t *testing.T, script string) string {
	t.Helper()
	cmd := m.command(script)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s%s", script, err, out, &stderr)
	}
	return string(out)
}

func (m *lossNode) records(*testing.T) map[string]string { return m.files }

var damage = regexp.MustCompile(`(?im)^.*(damaged|corrupt|cannot be decoded).*$`)

func (m *lossNode) problems(t *testing.T) string {
	t.Helper()
	return strings.Join(damage.FindAllString(read(t, m.log)[m.position:], -1), "\n")
}

func (m *lossNode) until(t *testing.T, asked func() string) {
	t.Helper()
	end := time.Now().Add(lossPatience)
	for missing := asked(); missing != ""; missing = asked() {
		m.init.alive(t)
		if time.Now().After(end) {
			t.Fatalf("after %s: %s", lossPatience, missing)
		}
		time.Sleep(time.Second)
	}
}
