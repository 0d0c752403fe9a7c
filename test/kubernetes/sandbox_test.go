package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The tests run in a separate process with separate namespaces. The root of the cgroups, /var/lib, /var/log, /run, the
// network and the processes that podctl, containerd and the kubelet see belong only to the tests. The first process of
// the namespaces is init. When it ends, the kernel ends all other processes and removes their mounts and networks.

const (
	dirEnv     = "PODCTL_KUBERNETES_DIR"
	cgroupsDir = "/sys/fs/cgroup"
	nodeName   = "node"
	nodeIP     = "192.0.2.10"
	cgroupName = "podctl-kubernetes"
)

// runInside runs this program in the namespaces, and returns its exit code.
func runInside() (int, error) {
	if _, err := given(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("/tmp", "podctl-kubernetes-")
	if err != nil {
		return 1, err
	}
	group, restore := newGroup(fmt.Sprintf("%s-%d", cgroupName, os.Getpid())), keepTunables()
	code, err := runIn(group, dir)
	return code, errors.Join(err, group.remove(), restore(), os.RemoveAll(dir))
}

// keepTunables returns a function that restores the kernel settings that a kubelet changes. These settings exist only
// once for all namespaces (kubelet: setupKernelTunables).
func keepTunables() func() error {
	before := map[string][]byte{}
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	} {
		path := filepath.Join("/proc/sys", name)
		if value, err := os.ReadFile(path); err == nil {
			before[path] = value
		}
	}
	return func() error {
		var all error
		for path, value := range before {
			if now, err := os.ReadFile(path); err == nil && !bytes.Equal(now, value) {
				all = errors.Join(all, os.WriteFile(path, value, 0o644))
			}
		}
		return all
	}
}

// runIn starts init in the cgroup. The cgroup of the process that creates a cgroup namespace becomes its root.
func runIn(group *group, dir string) (int, error) {
	// The child must end with this process, for which the kernel checks the thread.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	defer signal.Stop(signals)
	if err := group.enter(); err != nil {
		return 1, errors.Join(err, group.leave())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:noctx // a signal ends it
	cmd.Env = append(os.Environ(), stageEnv+"="+stageInit, dirEnv+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
		Pdeathsig:  unix.SIGKILL,
	}
	err := cmd.Start()
	if err = errors.Join(err, group.leave()); err != nil {
		return 1, err
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s) //nolint:errcheck // it may have ended
		}
	}()
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// beInit sets up the namespaces, runs the tests in a separate process, and reaps orphaned processes.
func beInit() (int, error) {
	if err := furnish(os.Getenv(dirEnv)); err != nil {
		return 1, fmt.Errorf("the namespaces of the tests cannot be set up: %w", err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	program, err := os.Executable()
	if err != nil {
		return 1, err
	}
	for name, value := range map[string]string{stageEnv: stageTests, "TMPDIR": os.Getenv(dirEnv)} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	if err != nil {
		return 1, err
	}
	child, err := os.StartProcess(program, os.Args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 1, err
	}
	go func() {
		s := <-signals
		fmt.Fprintln(os.Stderr, "test-kubernetes:", s)
		os.Exit(130)
	}()
	for {
		var status unix.WaitStatus
		switch pid, err := unix.Wait4(-1, &status, 0, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, err
		case pid == child.Pid && status.Signaled():
			return 1, fmt.Errorf("the tests ended by signal %s", status.Signal())
		case pid == child.Pid:
			return status.ExitStatus(), nil
		}
	}
}

// furnish sets the namespaces up as a node with its own mounts, address and name.
func furnish(dir string) error {
	for _, step := range []func(dir string) error{furnishMounts, furnishCgroups, furnishNetwork} {
		if err := step(dir); err != nil {
			return err
		}
	}
	return unix.Sethostname([]byte(nodeName))
}

func furnishMounts(dir string) error {
	resolv, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	// First detach from the machine's mounts, then share the mounts like systemd.
	if err = mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err == nil {
		err = mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
	}
	for _, own := range []string{"/var/lib", "/var/log"} {
		source := filepath.Join(dir, filepath.Base(own))
		if err == nil {
			err = os.MkdirAll(source, 0o755)
		}
		if err == nil {
			err = mount(source, own, "", unix.MS_BIND, "")
		}
	}
	for _, m := range []struct{ kind, at string }{{"tmpfs", "/run"}, {"proc", "/proc"}} {
		if err == nil {
			err = mount(m.kind, m.at, m.kind, 0, "")
		}
	}
	// Without a name server, names that are not in /etc/hosts fail at once. If the file was below /run, it is gone with
	// that.
	if err == nil {
		err = replaceFile(dir, resolv, "nameserver 127.0.0.1\n")
	}
	if err == nil {
		err = replaceFile(dir, "/etc/hosts", "127.0.0.1 localhost\n"+nodeIP+" "+nodeName+"\n")
	}
	return err
}

// replaceFile replaces a file with a text, in this namespace only.
func replaceFile(dir, path, text string) error {
	source := filepath.Join(dir, filepath.Base(path))
	err := os.WriteFile(source, []byte(text), 0o644)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if _, missing := os.Stat(path); err == nil && missing != nil {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil {
		return err
	}
	return mount(source, path, "", unix.MS_BIND, "")
}

// furnishCgroups mounts what the namespaces may see. A mount shows the network and the cgroups of the namespaces it was
// created in.
func furnishCgroups(string) error {
	version2, controllers, err := hierarchies()
	if err == nil {
		err = unix.Unmount(cgroupsDir, unix.MNT_DETACH)
	}
	if err == nil {
		err = mount("sysfs", "/sys", "sysfs", 0, "")
	}
	if err != nil {
		return err
	}
	if version2 {
		return mount("cgroup2", cgroupsDir, "cgroup2", 0, "")
	}
	if err = mount("tmpfs", cgroupsDir, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, c := range controllers {
		options := c
		if c == "systemd" {
			options = "none,name=systemd"
		}
		at := filepath.Join(cgroupsDir, c)
		if err = errors.Join(os.MkdirAll(at, 0o755), mount("cgroup", at, "cgroup", 0, options)); err != nil {
			return err
		}
	}
	return nil
}

func furnishNetwork(string) error {
	for _, line := range []string{
		"link set lo up",
		"link add eth0 type veth peer name eth0-peer",
		"link set eth0-peer up",
		"addr add " + nodeIP + "/24 dev eth0",
		"link set eth0 up",
		"route add default dev eth0",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil { //nolint:noctx // it is short
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
