package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// kubelet is a standalone kubelet on the bench's containerd: it takes pods from a
// directory. It kills whatever it does not know on its runtime, so it lives only around its
// own runs. Its start is not timed.
type kubelet struct {
	n   *node
	cmd *exec.Cmd
	// name and shape are those of the pod.
	name  string
	shape shape
}

const (
	// kubeletStart bounds the wait for a kubelet that starts.
	kubeletStart = 30 * time.Second
	// kubeletRest is how long a kubelet that has started cleans up after its predecessor.
	kubeletRest = 2 * time.Second
	// kubeletPause is how often the runtime is asked for what the kubelet has done: to be
	// asked costs it time.
	kubeletPause = 5 * time.Millisecond
	// kubeletLimit bounds one run.
	kubeletLimit = time.Minute
)

// kubelets is a kubelet that starts a pod, or none where none was named.
func (n *node) kubelets(name string, s shape) []contender {
	if n.o.kubelet == "" {
		return nil
	}
	k := &kubelet{n: n, name: name, shape: s}
	return []contender{{name: kubeletName, before: k.begin, run: k.start, after: k.end}}
}

// kubeletDeletes is a kubelet that takes a pod down.
func (n *node) kubeletDeletes(name string, s shape) []contender {
	if n.o.kubelet == "" {
		return nil
	}
	k := &kubelet{n: n, name: name, shape: s}
	begin := func(ctx context.Context) error {
		if err := k.begin(ctx); err != nil {
			return err
		}
		if _, err := k.start(ctx); err != nil {
			return errors.Join(err, k.end(context.WithoutCancel(ctx)))
		}
		return nil
	}
	return []contender{{name: kubeletName, before: begin, run: k.stop, after: k.end}}
}

const kubeletName = "a kubelet"

func (k *kubelet) dir(name string) string { return filepath.Join(k.n.dir, "kubelet", name) }

func (k *kubelet) manifest() string { return filepath.Join(k.dir("manifests"), k.name+".yaml") }

// begin starts the kubelet and waits until it is healthy and at rest.
func (k *kubelet) begin(ctx context.Context) error {
	if err := os.MkdirAll(k.dir("manifests"), 0o755); err != nil {
		return err
	}
	ports, err := freeKubeletPorts(ctx)
	if err != nil {
		return err
	}
	log, err := os.Create(k.dir("log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the kubelet has it
	if k.cmd, err = k.n.kubeletCommand(k.dir(""), ports); err != nil {
		return err
	}
	k.cmd.Stdout, k.cmd.Stderr = log, log
	if err = k.cmd.Start(); err != nil {
		return err
	}
	err = until(ctx, kubeletStart, func() (bool, error) {
		_, unhealthy := get(ctx, ports.address()+"/healthz")
		return unhealthy == nil, nil
	})
	if err != nil {
		said, _ := os.ReadFile(k.dir("log")) // It goes with the rest.
		return fmt.Errorf("the kubelet does not start: %w\n%s", errors.Join(err, k.end(context.WithoutCancel(ctx))), said)
	}
	time.Sleep(kubeletRest)
	return nil
}

// kubeletConfig is that of a kubelet without an API server, which keeps out of the way of
// one that may be on the machine.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %[1]s/manifests
containerRuntimeEndpoint: unix://%[2]s
imageServiceEndpoint: unix://%[2]s
cgroupDriver: cgroupfs
cgroupRoot: /%[3]s
podLogsDir: %[1]s/logs
healthzPort: 0
port: %[4]d
readOnlyPort: %[5]d
address: 127.0.0.1
maxPods: %[6]d
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 1Mi}
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`

// kubeletNode is the name of the kubelet's node, which ends the names of its pods.
const kubeletNode = "bench"

// kubeletPorts are where a kubelet listens.
type kubeletPorts struct{ server, readOnly int }

func freeKubeletPorts(ctx context.Context) (p kubeletPorts, err error) {
	if p.server, err = freePort(ctx); err == nil {
		p.readOnly, err = freePort(ctx)
	}
	return p, err
}

// address is what it answers without a certificate.
func (p kubeletPorts) address() string { return fmt.Sprintf("http://127.0.0.1:%d", p.readOnly) }

// kubeletCommand is a kubelet of the manifests below a directory, in which it keeps everything.
func (n *node) kubeletCommand(dir string, ports kubeletPorts) (*exec.Cmd, error) {
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Appendf(nil, kubeletConfig, dir, n.socket(), n.cgroupRoot(), ports.server, ports.readOnly, keeperPods)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	return exec.Command(n.o.kubelet, "--config", config, "--root-dir", filepath.Join(dir, "root"), //nolint:noctx // it is ended by a signal
		"--cert-dir", filepath.Join(dir, "certificates"), "--hostname-override", kubeletNode), nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close() //nolint:forcetypeassert // it listens on tcp
}

// start hands the kubelet the manifest, and ends when the containers run.
func (k *kubelet) start(ctx context.Context) (sample, error) {
	// The kubelet passes over files whose names begin with a dot.
	hidden := filepath.Join(k.dir("manifests"), ".new")
	if err := os.WriteFile(hidden, []byte(k.shape.manifest(k.name)), 0o600); err != nil {
		return sample{}, err
	}
	return clocked(func() error {
		if err := os.Rename(hidden, k.manifest()); err != nil {
			return err
		}
		return until(ctx, kubeletLimit, func() (bool, error) { return k.runs(ctx) })
	})
}

// stop takes the manifest away, and ends when nothing of the pod runs. What the kubelet
// leaves of it is removed by the bench.
func (k *kubelet) stop(ctx context.Context) (sample, error) {
	return clocked(func() error {
		if err := os.Remove(k.manifest()); err != nil {
			return err
		}
		return until(ctx, kubeletLimit, func() (bool, error) {
			sandboxes, err := k.sandboxes(ctx)
			for _, s := range sandboxes {
				if s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
					return false, err
				}
			}
			return err == nil, err
		})
	})
}

// runs reports whether all containers run but for the init containers, which have ended then.
func (k *kubelet) runs(ctx context.Context) (bool, error) {
	reply, err := k.n.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: k.labels(), State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	running := 0
	for _, c := range reply.GetContainers() {
		if strings.HasPrefix(c.GetMetadata().GetName(), regularPrefix) {
			running++
		}
	}
	return running == k.shape.containers, err
}

func (k *kubelet) sandboxes(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
	reply, err := k.n.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: k.labels()}})
	return reply.GetItems(), err
}

// labels are those of the pod: the kubelet adds its own name to that of a pod from a file.
func (k *kubelet) labels() map[string]string {
	return map[string]string{"io.kubernetes.pod.name": k.name + "-" + kubeletNode}
}

// end stops the kubelet, and removes what it made.
func (k *kubelet) end(ctx context.Context) error {
	if k.cmd == nil {
		return nil
	}
	k.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	k.cmd.Wait()                          //nolint:errcheck // it ends by the signal
	k.cmd = nil
	sandboxes, err := k.sandboxes(ctx)
	for _, s := range sandboxes {
		f := floor{n: k.n, sandboxID: s.GetId(), ids: map[string]string{}}
		err = errors.Join(err, f.remove(ctx))
	}
	// It mounts its directory on itself, unless it ended before.
	unmountErr := syscall.Unmount(k.dir("root"), syscall.MNT_DETACH)
	if !errors.Is(unmountErr, syscall.EINVAL) && !errors.Is(unmountErr, syscall.ENOENT) {
		err = errors.Join(err, unmountErr)
	}
	return errors.Join(err, os.RemoveAll(k.dir("")))
}

// until asks until the answer is yes.
func until(ctx context.Context, limit time.Duration, asked func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if yes, err := asked(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(kubeletPause):
		}
	}
}
