package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"text/template"
	"time"

	"github.com/opencontainers/cgroups"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// node is a private containerd with a separate state directory of podctl.
type node struct {
	dir    string
	cri    runtimeapi.RuntimeServiceClient
	images runtimeapi.ImageServiceClient
	podctl program
}

// newNode starts a private node. The caller must close it, also after an error.
func newNode(ctx context.Context, o *options) (n *node, err error) {
	n = &node{}
	if n.dir, err = os.MkdirTemp("", "podctl-bench-"); err != nil {
		return n, err
	}
	n.podctl = n.onNode(o.podctl)
	conn, err := grpc.NewClient(n.endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return n, err
	}
	n.cri, n.images = runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)
	return n, errors.Join(
		os.Mkdir(n.path("manifests"), 0o755),
		n.podctl.do("node", "up", "--containerd", o.containerd, "--load", filepath.Join(o.images, "pause.tar"),
			"--load", filepath.Join(o.images, demoArchive))(ctx),
	)
}

// close removes the node with its pods.
func (n *node) close(ctx context.Context) error {
	if n.dir == "" {
		return nil
	}
	return errors.Join(n.podctl.do("node", "down")(ctx), removeCgroup(n.cgroupRoot()), os.RemoveAll(n.dir))
}

// onNode returns a podctl program with the flags for this node.
func (n *node) onNode(podctl string) program {
	return program{podctl, "--state-dir", n.dir, "--log-root", n.path("logs"), "--cgroup-root", n.cgroupRoot()}
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) manifest(name string) string { return n.path("manifests/" + name + ".yaml") }

func (n *node) endpoint() string { return "unix://" + n.path("node/containerd.sock") }

// cgroupRoot separates the bench's pods from the machine's.
func (n *node) cgroupRoot() string { return filepath.Base(n.dir) }

// put adds or replaces a file with the manifests of pods of one shape atomically.
func (n *node) put(file string, s shape, pods ...string) step {
	return func(context.Context) error {
		var text strings.Builder
		for _, pod := range pods {
			text.WriteString("---\n" + s.manifest(pod))
		}
		// An agent ignores names that begin with a dot.
		hidden := n.path("manifests/." + file)
		if err := os.WriteFile(hidden, []byte(text.String()), 0o600); err != nil {
			return err
		}
		return os.Rename(hidden, n.manifest(file))
	}
}

// call returns a step that calls the runtime. An object that is gone is not an error.
func call[Q, R any](rpc func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) step {
	return func(ctx context.Context) error {
		_, err := rpc(ctx, request)
		if status.Code(err) == codes.NotFound {
			return nil
		}
		return err
	}
}

// stopSandbox stops a sandbox with its containers.
func (n *node) stopSandbox(id string) step {
	return call(n.cri.StopPodSandbox, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
}

// removeSandbox removes a sandbox with its containers.
func (n *node) removeSandbox(id string) step {
	return call(n.cri.RemovePodSandbox, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
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

// machine describes the machine and the versions of all programs.
func (n *node) machine(ctx context.Context, others ...program) string {
	version, _ := n.cri.Version(ctx, &runtimeapi.VersionRequest{}) // Unknown versions stay empty.
	programs := []string{version.GetRuntimeName() + " " + version.GetRuntimeVersion()}
	for _, other := range append([]program{{"runc"}}, others...) {
		if other != nil {
			programs = append(programs, other[:1].firstLine(ctx, "--version"))
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // As above.
	return fmt.Sprintf("One run on %d cores (%s), %.0f MiB of memory and Linux %s, with %s. podctl is %s.\n",
		goruntime.NumCPU(), field("/proc/cpuinfo", "model name"), mebibytes("/proc/meminfo", "MemTotal"),
		strings.TrimSpace(string(kernel)), strings.Join(programs, ", "),
		strings.TrimSpace(strings.TrimPrefix(n.podctl.firstLine(ctx, "version", "--client"), "podctl:")))
}

const (
	// demoImage is the image of all containers, and demoArchive its file.
	demoImage   = "registry.local/podctl/demo:1"
	demoArchive = "demo.tar"
	// regularPrefix is the prefix of the names of regular containers.
	regularPrefix = "c"
	// graceSeconds is the grace period of all pods; the demo program obeys SIGTERM at once.
	graceSeconds = 5
)

// shape is a pod of demo containers.
type shape struct {
	inits, containers int
	// sleep is the duration of each init container.
	sleep time.Duration
	// host puts the pod into the machine's network.
	host bool
	// mark is in the environment of the last container. Another mark replaces the container.
	mark string
	// probed probes its only container three times in ten seconds.
	probed bool
}

//go:embed pod.yaml
var podManifest string

func (s shape) manifest(name string) string {
	var text strings.Builder
	err := template.Must(template.New("pod").Parse(podManifest)).Execute(&text, map[string]any{
		"name": name, "image": demoImage, "prefix": regularPrefix, "grace": graceSeconds, "host": s.host,
		"inits": s.inits, "sleep": s.sleep, "containers": s.containers, "last": s.containers - 1, "mark": s.mark,
		"probed": s.probed,
	})
	if err != nil {
		panic(err) // The template has only these fields.
	}
	return text.String()
}

// podNames returns the names of count pods.
func podNames(prefix string, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}
