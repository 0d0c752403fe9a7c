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

	"github.com/podctl/podctl/runtime/safefs"
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
// default runtime. The containers of pods can have any names. proc is /proc, or another directory in tests.
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
			standard, is := known[name]
			if is && isTrusted(dir) && !isOfPod(dir) && !yield(dir, Kubelet{name, pid, standard}) {
				return
			}
		}
	}
}

// FindKubelet looks for a kubelet that uses a runtime, also in a container. proc is /proc.
func FindKubelet(proc, endpoint string) (Kubelet, bool) {
	for dir, k := range kubeletsIn(proc) {
		args := strings.Split(string(readAtMost(os.Open(filepath.Join(dir, "cmdline")))), "\x00")
		if k.Endpoint = kubeletEndpoint(dir, args, k.Endpoint); sameSocket(proc, dir, k.Endpoint, endpoint) {
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
// Any user can start a setuid program, under any name. Only root sees the programs of root; other users see who started
// them, unless the program has hidden that.
func isTrusted(dir string) bool {
	var process, program unix.Stat_t
	if unix.Stat(dir, &process) != nil || process.Uid != 0 && int(process.Uid) != os.Geteuid() {
		return false
	}
	if err := unix.Stat(filepath.Join(dir, "exe"), &program); err != nil {
		return errors.Is(err, unix.EACCES) && statusOf(dir, "Uid:") == "0"
	}
	return program.Mode&unix.S_ISUID == 0
}

// isOfPod reports whether a process belongs to a pod of podctl or of a kubelet.
func isOfPod(dir string) bool {
	return strings.Contains(string(contents(filepath.Join(dir, "cgroup"))), "/kubepods")
}

// parentOf returns the name of the parent of a process, or nothing if that is init.
func parentOf(proc, dir string) string {
	if parent := statusOf(dir, "PPid:"); parent != "" && parent != "0" && parent != "1" {
		return commandName(filepath.Join(proc, parent, "comm"))
	}
	return ""
}

// statusOf returns the first value of a line of the status of a process.
func statusOf(dir, name string) string {
	for line := range strings.Lines(string(contents(filepath.Join(dir, "status")))) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			return words[1]
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

// readAs reads a file under the name that it has for a process. It returns nothing if that is no regular file.
func readAs(dir, path string) []byte {
	handle, err := handleAs(dir, path)
	if err != nil {
		return nil
	}
	defer handle.Close() //nolint:errcheck // it was only a path
	return readAtMost(safefs.ReopenRegular(handle, path))
}

// processTextMax limits what is read of a file that a process controls, such as its command line.
const processTextMax = 1 << 20

// readAtMost reads the beginning of a file that was opened. It returns nothing if that failed.
func readAtMost(f *os.File, err error) []byte {
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, _ := io.ReadAll(io.LimitReader(f, processTextMax))
	return text
}

// handleAs opens a file with O_PATH under the name that it has for a process, which can have another root directory.
// Users who may not see that directory, and kernels before 5.6, get their own file of that name.
func handleAs(dir, path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		if err != nil {
			return nil, err
		}
		path = filepath.Join(cwd, path)
	}
	f, err := safefs.HandleIn(filepath.Join(dir, "root"), path)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOSYS) {
		return os.OpenFile(path, unix.O_PATH, 0)
	}
	return f, err
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

// sameSocket reports whether an endpoint of a process and one of this process are the same socket. The names decide
// only for a process with the same files, and if the files of a process cannot be examined.
func sameSocket(proc, dir, theirs, ours string) bool {
	theirs, ours = strings.TrimPrefix(theirs, "unix://"), strings.TrimPrefix(ours, "unix://")
	f, err := handleAs(dir, theirs)
	if err != nil {
		return (errors.Is(err, os.ErrPermission) || shares(proc, dir, "mnt")) && realName(theirs) == realName(ours)
	}
	defer f.Close() //nolint:errcheck // it was only a path
	a, err := f.Stat()
	b, ownErr := os.Stat(ours)
	return err == nil && ownErr == nil && os.SameFile(a, b)
}

// realName returns a path with links resolved, also if it does not exist.
func realName(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return strings.Replace(path, "/var/run/", "/run/", 1)
}
