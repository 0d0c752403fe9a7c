package main

import (
	"context"
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

// node is a private containerd with a separate state directory of podctl.
type node struct {
	o    *options
	dir  string
	conn *grpc.ClientConn
	cri  runtimeapi.RuntimeServiceClient
	// podman and crictl are commands with their flags; nil if they are not installed.
	podman, crictl []string
}

// newNode starts a private node.
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
	n.cri = runtimeapi.NewRuntimeServiceClient(n.conn)
	if err = n.tryPodman(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench: podman is left out:", err)
		n.podman = nil
	}
	return n, nil
}

// tool splits a command with flags; it returns nil if the command is not installed.
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

// close removes the node with its pods.
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

// cgroupRoot separates the bench's pods from the machine's.
func (n *node) cgroupRoot() string { return filepath.Base(n.dir) }

// args returns the arguments of a command after the flags for this node.
func (n *node) args(args ...string) []string {
	return append(
		[]string{"--state-dir", n.dir, "--log-root", filepath.Join(n.dir, "logs"), "--cgroup-root", n.cgroupRoot()},
		args...,
	)
}

// podctl runs podctl and ignores its output.
func (n *node) podctl(ctx context.Context, args ...string) error {
	_, _, err := timed(ctx, n.o.podctl, n.args(args...)...)
	return err
}

// do returns a step that runs podctl.
func (n *node) do(args ...string) step {
	return func(ctx context.Context) error { return n.podctl(ctx, args...) }
}

// timedPodctl returns a contender that runs a podctl program.
func (n *node) timedPodctl(name, program string, args ...string) contender {
	return contender{name: name, run: func(ctx context.Context) (sample, error) {
		s, _, err := timed(ctx, program, n.args(args...)...)
		return s, err
	}}
}

// removeCgroup removes a cgroup with all below it, in each hierarchy.
func removeCgroup(name string) error {
	if strings.Trim(name, "/") == "" {
		return errors.New("the root of the cgroups must not be removed")
	}
	paths, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, path := range append(paths, filepath.Join("/sys/fs/cgroup", name)) {
		err = errors.Join(err, cgroups.RemovePath(path))
	}
	return err
}

// write writes a manifest to the bench's directory.
func (n *node) write(name, text string) (string, error) {
	path := filepath.Join(n.dir, "manifests", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// machine describes the machine and the versions of all programs.
func (n *node) machine(ctx context.Context) string {
	version, _ := n.cri.Version(ctx, &runtimeapi.VersionRequest{}) // Unknown versions stay empty.
	others := [][]string{{"runc"}, n.crictl, n.podman, {n.o.kubelet}}
	programs := []string{version.GetRuntimeName() + " " + version.GetRuntimeVersion()}
	for _, tool := range others {
		if len(tool) > 0 && tool[0] != "" {
			programs = append(programs, firstLine(ctx, tool[0], "--version"))
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // As above.
	return fmt.Sprintf("One run on %d cores (%s), %.0f MiB of memory and Linux %s, with %s. podctl is %s.\n",
		goruntime.NumCPU(), field("/proc/cpuinfo", "model name"), mebibytes("/proc/meminfo", "MemTotal"),
		strings.TrimSpace(string(kernel)), strings.Join(programs, ", "),
		strings.TrimSpace(strings.TrimPrefix(firstLine(ctx, n.o.podctl, "version", "--client"), "podctl:")))
}

// firstLine returns the first line of a command's output.
func firstLine(ctx context.Context, name string, args ...string) string {
	_, text, _ := timed(ctx, name, args...) // An unknown version stays empty.
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// field returns the value of "name : value" in a file of /proc.
func field(path, name string) string {
	text, _ := os.ReadFile(path) // A process may have ended.
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// mebibytes returns a field in KiB of a file of /proc as MiB. It returns zero if the file no longer exists.
func mebibytes(path, name string) float64 {
	var kib float64
	fmt.Sscan(field(path, name), &kib) //nolint:errcheck // it stays zero then
	return kib / (1 << 10)
}
