package machine

import (
	"cmp"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// Kubelet is a process of this machine that is a kubelet or contains one.
type Kubelet struct {
	Process string
	PID     int
	// Endpoint is the runtime that it uses.
	Endpoint string
}

// kubelets maps programs that are or contain a kubelet to their default runtime.
func kubelets() map[string]string {
	const k3s = "/run/k3s/containerd/containerd.sock"
	return map[string]string{
		"kubelet": "/run/containerd/containerd.sock",
		"k3s":     k3s, "k3s-server": k3s, "k3s-agent": k3s, "rke2": k3s,
		"k0s":      "/run/k0s/containerd.sock",
		"kubelite": "/var/snap/microk8s/common/run/containerd.sock",
	}
}

// kubeletsIn returns the processes of trusted users with the name of such a program by their directories, with their
// default runtime. proc is /proc, or another directory in tests.
func kubeletsIn(proc string) iter.Seq2[string, Kubelet] {
	known := kubelets()
	return func(yield func(string, Kubelet) bool) {
		for _, entry := range namesIn(proc) {
			pid, err := strconv.Atoi(entry)
			if err != nil {
				continue
			}
			dir := filepath.Join(proc, entry)
			name := commandName(filepath.Join(dir, "comm"))
			if standard, is := known[name]; is && isTrusted(dir) && !yield(dir, Kubelet{name, pid, standard}) {
				return
			}
		}
	}
}

// FindKubelet looks for a kubelet that uses a runtime, also in a container. proc is /proc.
func FindKubelet(proc, endpoint string) (Kubelet, bool) {
	for dir, k := range kubeletsIn(proc) {
		args := strings.Split(string(contents(filepath.Join(dir, "cmdline"))), "\x00")
		if k.Endpoint = kubeletEndpoint(dir, args, k.Endpoint); sameSocket(dir, k.Endpoint, endpoint) {
			return k, true
		}
	}
	return Kubelet{}, false
}

// KubeletOfCgroups returns a kubelet that has the cgroups of this process, with any runtime. Its Endpoint is the
// default of its program. proc is /proc.
func KubeletOfCgroups(proc string) (Kubelet, bool) {
	for dir, k := range kubeletsIn(proc) {
		if shares(proc, dir, "cgroup") {
			return k, true
		}
	}
	return Kubelet{}, false
}

// OwnKubelet returns the only kubelet that runs as a process of its own, with the name of its parent if that is not
// init. Those in containers have other files. proc is /proc.
func OwnKubelet(proc string) (pid int, parent string, found bool) {
	for dir, k := range kubeletsIn(proc) {
		if k.Process != "kubelet" || !shares(proc, dir, "mnt") {
			continue
		}
		if found {
			return 0, "", false
		}
		pid, parent, found = k.PID, parentOf(proc, dir), true
	}
	return pid, parent, found
}

// shares reports whether a process is in the same namespace as this one.
func shares(proc, dir, namespace string) bool {
	ours, err := os.Readlink(filepath.Join(proc, "self/ns", namespace))
	theirs, theirErr := os.Readlink(filepath.Join(dir, "ns", namespace))
	return err == nil && theirErr == nil && ours == theirs
}

// isTrusted reports whether a process belongs to root or to the user of this one: others cannot claim to be a kubelet.
// Any user can start a setuid program, under any name. Only root sees the programs of root.
func isTrusted(dir string) bool {
	var process, program unix.Stat_t
	if unix.Stat(dir, &process) != nil || process.Uid != 0 && int(process.Uid) != os.Geteuid() {
		return false
	}
	err := unix.Stat(filepath.Join(dir, "exe"), &program)
	return errors.Is(err, unix.EACCES) || err == nil && program.Mode&unix.S_ISUID == 0
}

// parentOf returns the name of the parent of a process, or nothing if that is init.
func parentOf(proc, dir string) string {
	for line := range strings.Lines(string(contents(filepath.Join(dir, "status")))) {
		parent, is := strings.CutPrefix(line, "PPid:")
		if parent = strings.TrimSpace(parent); is && parent != "0" && parent != "1" {
			return commandName(filepath.Join(proc, parent, "comm"))
		}
	}
	return ""
}

// namesIn lists a directory in no order. On a machine without /proc there is no kubelet to find.
func namesIn(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close() //nolint:errcheck // it was only read
	names, _ := d.Readdirnames(-1)
	return names
}

// commandName reads the name of a process with only three system calls, because it is called for every process of the
// machine.
func commandName(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	var name [64]byte
	n, err := unix.Read(fd, name[:])
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name[:n]))
}

// kubeletEndpoint returns the runtime of a kubelet: from its flag, from its configuration file, or the default.
func kubeletEndpoint(dir string, args []string, standard string) string {
	if endpoint := flagValue(args, "container-runtime-endpoint"); endpoint != "" {
		return endpoint
	}
	var config struct {
		ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	}
	if err := yaml.Unmarshal(readAs(dir, flagValue(args, "config")), &config); err == nil {
		return cmp.Or(config.ContainerRuntimeEndpoint, standard)
	}
	return standard
}

// maxKubeletConfig limits the file that a command line names.
const maxKubeletConfig = 1 << 20

// readAs reads a file under the name that it has for a process. It returns nothing if that is no regular file.
func readAs(dir, path string) []byte {
	f, err := openAs(dir, path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxKubeletConfig))
	return text
}

// openAs opens a file under the name that it has for a process, which can have another root directory. Users who may
// not see that directory get their own file of that name.
func openAs(dir, path string, flags int) (*os.File, error) {
	from, how := "cwd", unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC)} //nolint:gosec // flags
	if filepath.IsAbs(path) {
		from, how.Resolve = "root", unix.RESOLVE_IN_ROOT
	}
	base, err := unix.Open(filepath.Join(dir, from), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(base) //nolint:errcheck // it was only a path
	} else if base, how.Resolve = unix.AT_FDCWD, 0; from == "cwd" {
		return nil, os.NewSyscallError("open", err)
	}
	fd, err := unix.Openat2(base, path, &how)
	if err != nil {
		return nil, os.NewSyscallError("openat2", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// flagValue returns the value of a flag in either form: --name=value, --name value.
func flagValue(args []string, name string) string {
	for i, arg := range args {
		key, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case key != name || !strings.HasPrefix(arg, "-"):
		case joined:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

// sameSocket reports whether an endpoint of a process and one of this process are the same socket. If that cannot be
// examined, their names decide.
func sameSocket(dir, theirs, ours string) bool {
	theirs, ours = strings.TrimPrefix(theirs, "unix://"), strings.TrimPrefix(ours, "unix://")
	if f, err := openAs(dir, theirs, unix.O_PATH); err == nil {
		defer f.Close() //nolint:errcheck // it was only a path
		a, err := f.Stat()
		b, ownErr := os.Stat(ours)
		if err == nil && ownErr == nil {
			return os.SameFile(a, b)
		}
	}
	return realName(theirs) == realName(ours)
}

// realName returns a path with links resolved, also if it does not exist.
func realName(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return strings.Replace(path, "/var/run/", "/run/", 1)
}
