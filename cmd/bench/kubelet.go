package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	if err = os.WriteFile(k.dir("config.yaml"), fmt.Appendf(nil, kubeletConfig, k.dir("manifests"), k.n.socket(), k.n.socket(),
		k.n.cgroupRoot(), k.dir("logs"), port), 0o600); err != nil {
		return err
	}
	log, err := os.Create(k.dir("log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the kubelet has it
	k.cmd = exec.CommandContext(ctx, k.n.o.kubelet, "--config", k.dir("config.yaml"), "--root-dir", k.dir("root"),
		"--cert-dir", k.dir("certificates"), "--hostname-override", "bench")
	k.cmd.Stdout, k.cmd.Stderr = log, log
	k.cmd.Cancel = func() error { return k.cmd.Process.Signal(syscall.SIGTERM) }
	if err = k.cmd.Start(); err != nil {
		return err
	}
	err = until(ctx, kubeletStart, func() (bool, error) { return healthy(ctx, port), nil })
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
staticPodPath: %s
containerRuntimeEndpoint: unix://%s
imageServiceEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: /%s
podLogsDir: %s
healthzPort: %d
enableServer: false
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 1Mi}
authentication: {webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close() //nolint:forcetypeassert // it listens on tcp
}

func healthy(ctx context.Context, port int) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/healthz", port), http.NoBody)
	if err != nil {
		return false
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return reply.Body.Close() == nil && reply.StatusCode == http.StatusOK
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
	return map[string]string{"io.kubernetes.pod.name": k.name + "-bench"}
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
