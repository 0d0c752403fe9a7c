package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// Kubelet is a process of this machine that is a kubelet, or has one inside.
type Kubelet struct {
	Process string
	PID     int
	// Endpoint is the runtime that it uses.
	Endpoint string
}

// kubelets are the processes that are a kubelet, or have one inside, and the
// runtime each uses when nothing else is said.
func kubelets() map[string]string {
	const k3s = "/run/k3s/containerd/containerd.sock"
	return map[string]string{
		"kubelet": "/run/containerd/containerd.sock",
		"k3s":     k3s, "k3s-server": k3s, "k3s-agent": k3s, "rke2": k3s,
		"k0s":      "/run/k0s/containerd.sock",
		"kubelite": "/var/snap/microk8s/common/run/containerd.sock",
	}
}

// FindKubelet looks below /proc, which a test may have elsewhere, for a kubelet that uses
// a runtime.
func FindKubelet(proc, endpoint string) (Kubelet, bool) {
	known := kubelets()
	for _, entry := range namesIn(proc) {
		pid, err := strconv.Atoi(entry)
		if err != nil {
			continue
		}
		name := commandName(filepath.Join(proc, entry, "comm"))
		standard, is := known[name]
		if !is {
			continue
		}
		args := strings.Split(string(contents(filepath.Join(proc, entry, "cmdline"))), "\x00")
		if used := kubeletEndpoint(args, standard); sameSocket(used, endpoint) {
			return Kubelet{Process: name, PID: pid, Endpoint: used}, true
		}
	}
	return Kubelet{}, false
}

// namesIn lists a directory, in no order; a machine without /proc has no kubelet to find.
func namesIn(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close() //nolint:errcheck // it was only read
	names, _ := d.Readdirnames(-1)
	return names
}

// commandName reads the name of a process. There are as many as the machine has
// processes, so it is done in three system calls.
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

// kubeletEndpoint is the runtime that a kubelet was told to use: by its flag, by
// its configuration file, or by nobody.
func kubeletEndpoint(args []string, standard string) string {
	if endpoint := flagValue(args, "container-runtime-endpoint"); endpoint != "" {
		return endpoint
	}
	var config struct {
		ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	}
	if file := flagValue(args, "config"); file != "" {
		if err := yaml.Unmarshal(contents(file), &config); err == nil && config.ContainerRuntimeEndpoint != "" {
			return config.ContainerRuntimeEndpoint
		}
	}
	return standard
}

// flagValue is the value of a flag in either form: --name=value, --name value.
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

// sameSocket reports whether two endpoints are one socket, whatever links lead to it.
func sameSocket(a, b string) bool {
	paths := []string{strings.TrimPrefix(a, "unix://"), strings.TrimPrefix(b, "unix://")}
	for i, path := range paths {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			paths[i] = target
		}
		paths[i] = strings.Replace(paths[i], "/var/run/", "/run/", 1)
	}
	return len(slices.Compact(paths)) == 1
}
