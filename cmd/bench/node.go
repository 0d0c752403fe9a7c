package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/opencontainers/cgroups"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// node is a private containerd with podctl's own state, and what is timed on it.
type node struct {
	o    *options
	dir  string
	conn *grpc.ClientConn
	cri  runtimeapi.RuntimeServiceClient
	img  runtimeapi.ImageServiceClient
	// podman and crictl are commands with their flags; nil where they are not installed.
	podman, crictl []string
	// filled is how many pods stand beside those that are measured.
	filled int
}

// newNode brings a private node up.
func newNode(ctx context.Context, o *options) (*node, error) {
	dir, err := os.MkdirTemp("", "podctl-bench-")
	if err != nil {
		return nil, err
	}
	n := &node{o: o, dir: dir, podman: tool(o.podman), crictl: tool(o.crictl)}
	err = n.podctl(ctx, "node", "up", "--containerd", o.containerd,
		"--load", filepath.Join(o.images, "pause.tar"), "--load", filepath.Join(o.images, "demo.tar"))
	if err == nil {
		n.conn, err = grpc.NewClient("unix://"+n.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if err != nil {
		return nil, errors.Join(err, n.close(context.WithoutCancel(ctx)))
	}
	n.cri, n.img = runtimeapi.NewRuntimeServiceClient(n.conn), runtimeapi.NewImageServiceClient(n.conn)
	if err = n.tryPodman(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench: podman is left out:", err)
		n.podman = nil
	}
	return n, nil
}

// tool splits a command with flags, and is nil when it is not installed.
func tool(command string) []string {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil
	}
	return words
}

// close takes the node down with all that runs on it.
func (n *node) close(ctx context.Context) error {
	if n.conn != nil {
		n.conn.Close() //nolint:errcheck // nothing more is sent
	}
	if n.podman != nil {
		n.runPodman(ctx, "rmi", demoImage) //nolint:errcheck // it may never have been loaded
	}
	return errors.Join(n.podctl(ctx, "node", "down"), removeCgroup(n.cgroupRoot()), os.RemoveAll(n.dir))
}

func (n *node) socket() string { return filepath.Join(n.dir, "node", "containerd.sock") }

// cgroupRoot keeps the bench's pods apart from the machine's.
func (n *node) cgroupRoot() string { return filepath.Base(n.dir) }

// args puts the flags of this node before those of a command.
func (n *node) args(args ...string) []string {
	return append([]string{"--state-dir", n.dir, "--log-root", filepath.Join(n.dir, "logs"), "--cgroup-root", n.cgroupRoot()}, args...)
}

// podctl runs podctl for its effect.
func (n *node) podctl(ctx context.Context, args ...string) error {
	_, err := timed(ctx, n.o.podctl, n.args(args...)...)
	return err
}

// timedPodctl is a contender's run.
func (n *node) timedPodctl(args ...string) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) { return timed(ctx, n.o.podctl, n.args(args...)...) }
}

// do is podctl as something to do before or after a run.
func (n *node) do(args ...string) step {
	return func(ctx context.Context) error { return n.podctl(ctx, args...) }
}

// countTrips counts the calls to the runtime in one run of podctl, which logs them.
func (n *node) countTrips(before, after step, args ...string) func(context.Context) (map[string]int, error) {
	return func(ctx context.Context) (map[string]int, error) {
		if err := before.do(ctx); err != nil {
			return nil, err
		}
		e, err := execute(ctx, n.o.podctl, append(n.args("--verbose", "--log-format", "json"), args...)...)
		if err != nil {
			return nil, err
		}
		counts := map[string]int{}
		for line := range strings.Lines(e.stderr) {
			if method := parseCall([]byte(line)); method != "" {
				counts[method]++
			}
		}
		return counts, after.do(ctx)
	}
}

// parseCall returns the method of the call that a line of podctl's log is about, or nothing.
func parseCall(line []byte) string {
	var entry struct{ Msg, Method string }
	if json.Unmarshal(line, &entry) != nil || entry.Msg != "CRI call" {
		return ""
	}
	return entry.Method
}

// removeCgroup removes a cgroup with all below it, in each hierarchy there is.
func removeCgroup(name string) error {
	if strings.Trim(name, "/") == "" {
		return errors.New("the root of the cgroups is not the bench's to remove")
	}
	paths, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, path := range append(paths, filepath.Join("/sys/fs/cgroup", name)) {
		err = errors.Join(err, cgroups.RemovePath(path))
	}
	return err
}

// write puts a manifest into the bench's directory.
func (n *node) write(name, text string) (string, error) {
	path := filepath.Join(n.dir, "manifests", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// machine describes what is measured on.
func (n *node) machine(ctx context.Context) Machine {
	version, _ := n.cri.Version(ctx, &runtimeapi.VersionRequest{}) // Unknown versions stay empty.
	m := Machine{
		CPUs: goruntime.NumCPU(), CPU: field("/proc/cpuinfo", "model name"),
		Kernel: firstLine(os.ReadFile("/proc/sys/kernel/osrelease")),
		Podctl: said(ctx, n.o.podctl, "version", "--client"), OCI: said(ctx, "runc", "--version"),
		Runtime: strings.TrimSpace(version.GetRuntimeName() + " " + version.GetRuntimeVersion()),
	}
	fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%d", &m.MemoryGB) //nolint:errcheck // it stays zero then
	m.MemoryGB >>= 20
	if n.podman != nil {
		m.Podman = said(ctx, n.podman[0], "--version")
	}
	if n.crictl != nil {
		m.Crictl = said(ctx, n.crictl[0], "--version")
	}
	if n.o.kubelet != "" {
		m.Kubelet = said(ctx, n.o.kubelet, "--version")
	}
	return m
}

// said is the first line of what a command prints.
func said(ctx context.Context, name string, args ...string) string {
	e, err := execute(ctx, name, args...)
	return firstLine([]byte(e.stdout), err)
}

func firstLine(text []byte, err error) string {
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// field finds "name : value" in a file of /proc.
func field(path, name string) string {
	text, _ := os.ReadFile(path) // A process may have ended.
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// mebibytes is a line of the status of a process; zero once it has ended.
func mebibytes(pid int, name string) float64 {
	var kib float64
	fmt.Sscan(field(fmt.Sprintf("/proc/%d/status", pid), name), &kib) //nolint:errcheck // it stays zero then
	return kib / (1 << 10)
}
