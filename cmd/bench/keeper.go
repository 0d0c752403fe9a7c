package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// keeper keeps the pods of a directory on a containerd of its own: podctl's agent, or a kubelet.
type keeper struct {
	*node

	name string
	// suffix is what it adds to the names of its pods.
	suffix string
	// command makes its process, which serves its metrics at the address.
	command func() (*exec.Cmd, error)
	address string
	// known is how many pods it says that it keeps running.
	known func(ctx context.Context) (int, error)

	cmd *exec.Cmd
}

const agentName = "podctl agent"

const (
	// keeperLimit bounds each wait for something that a keeper is to do.
	keeperLimit = 3 * time.Minute
	// keeperPods is how many pods each may keep: those of the curves, and those that are timed beside them.
	keeperPods = 200
)

// newAgent is podctl's agent.
func newAgent(ctx context.Context, n *node) (*keeper, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	k := &keeper{node: n, name: agentName, address: "http://" + listen}
	k.command = func() (*exec.Cmd, error) {
		args := n.args("agent", "--listen", listen, "--max-pods", fmt.Sprint(keeperPods),
			"--eviction-hard", "memory.available<1Mi", k.dir("manifests"))
		return exec.Command(n.o.podctl, args...), nil //nolint:noctx // it is ended by a signal
	}
	k.known = func(ctx context.Context) (int, error) {
		// It answers yes once every pod has had a pass.
		if _, err := get(ctx, k.address+"/readyz"); err != nil {
			return 0, nil //nolint:nilerr // it is not ready
		}
		return k.gauge(ctx, "kubelet_running_pods")
	}
	return k, nil
}

// newKubelet is a kubelet without an API server.
func newKubelet(ctx context.Context, n *node) (*keeper, error) {
	k := &keeper{node: n, name: kubeletName, suffix: "-" + kubeletNode}
	ports, err := freeKubeletPorts(ctx)
	if err != nil {
		return nil, err
	}
	k.address = ports.address()
	k.command = func() (*exec.Cmd, error) { return n.kubeletCommand(k.dir(""), ports) }
	k.known = func(ctx context.Context) (int, error) {
		text, err := get(ctx, k.address+"/pods")
		if err != nil {
			return 0, nil //nolint:nilerr // it starts
		}
		return runningPods(text)
	}
	return k, nil
}

// runningPods counts the pods of a list whose phase is Running.
func runningPods(list []byte) (int, error) {
	var pods struct {
		Items []struct {
			Status struct{ Phase string }
		}
	}
	if err := json.Unmarshal(list, &pods); err != nil {
		return 0, err
	}
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == "Running" {
			running++
		}
	}
	return running, nil
}

func (k *keeper) dir(name string) string { return filepath.Join(k.node.dir, "keeper", name) }

// start starts the process, and returns once it says that it keeps so many pods.
func (k *keeper) start(ctx context.Context, pods int) (time.Duration, error) {
	if err := os.MkdirAll(k.dir("manifests"), 0o755); err != nil {
		return 0, err
	}
	log, err := os.OpenFile(k.dir("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close() //nolint:errcheck // the process has it
	cmd, err := k.command()
	if err != nil {
		return 0, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err = cmd.Start(); err != nil {
		return 0, err
	}
	k.cmd = cmd
	err = until(ctx, keeperLimit, func() (bool, error) {
		known, failed := k.known(ctx)
		return known >= pods, failed
	})
	if err != nil {
		return 0, fmt.Errorf("%s does not start: %w\n%s", k.name, err, k.said())
	}
	return time.Since(began), nil
}

// said is the end of what the process has logged.
func (k *keeper) said() string {
	const most = 4096
	text, err := os.ReadFile(k.dir("log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// kill ends the process without a word.
func (k *keeper) kill() {
	if k.cmd != nil {
		k.cmd.Process.Kill() //nolint:errcheck // it may have ended
		k.cmd.Wait()         //nolint:errcheck // it ends by the signal
		k.cmd = nil
	}
}

// end stops the process, removes its pods and takes its node down.
func (k *keeper) end(ctx context.Context) error {
	k.kill()
	err := k.removeLeft(ctx)
	// A kubelet mounts its directory on itself.
	unmountErr := syscall.Unmount(k.dir("root"), syscall.MNT_DETACH)
	if !errors.Is(unmountErr, syscall.EINVAL) && !errors.Is(unmountErr, syscall.ENOENT) {
		err = errors.Join(err, unmountErr)
	}
	return errors.Join(err, k.close(ctx))
}

// put puts the manifest of a pod into the directory at once, or another in its place.
func (k *keeper) put(name string, s shape) error {
	// What begins with a dot is passed over.
	hidden := k.dir("manifests") + "/." + name
	if err := os.WriteFile(hidden, []byte(s.manifest(name)), 0o600); err != nil {
		return err
	}
	return os.Rename(hidden, k.manifest(name))
}

func (k *keeper) manifest(name string) string { return k.dir("manifests/" + name + ".yaml") }

// drop takes manifests away, and waits until nothing is left of their pods. A kubelet leaves records for
// later, which are removed for it.
func (k *keeper) drop(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := os.Remove(k.manifest(name)); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := until(ctx, keeperLimit, func() (bool, error) {
			reply, err := k.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: k.labels(name)}})
			for _, s := range reply.GetItems() {
				if k.suffix != "" && s.GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
					// It may be removing it, too.
					_, _ = k.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
				}
			}
			return len(reply.GetItems()) == 0, err
		})
		if err != nil {
			return fmt.Errorf("%s does not stop %s: %w", k.name, name, err)
		}
	}
	return nil
}

// labels are those of a pod.
func (k *keeper) labels(name string) map[string]string {
	return map[string]string{"io.kubernetes.pod.name": name + k.suffix}
}

// removeLeft removes what is left of all pods.
func (k *keeper) removeLeft(ctx context.Context) error {
	reply, err := k.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	for _, s := range reply.GetItems() {
		_, stopErr := k.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.GetId()})
		_, removeErr := k.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
		err = errors.Join(err, stopErr, removeErr)
	}
	return err
}

// containers are the containers of a pod, or of all pods for an empty name, that run.
func (k *keeper) containers(ctx context.Context, name string) ([]*runtimeapi.Container, error) {
	filter := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	if name != "" {
		filter.LabelSelector = k.labels(name)
	}
	reply, err := k.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	return reply.GetContainers(), err
}

// startedAt is when the last of some containers was started, as the runtime says.
func startedAt(ctx context.Context, cri runtimeapi.RuntimeServiceClient, containers []*runtimeapi.Container) (last time.Time, err error) {
	for _, c := range containers {
		reply, err := cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()})
		if err != nil {
			return last, err
		}
		if at := time.Unix(0, reply.GetStatus().GetStartedAt()); at.After(last) {
			last = at
		}
	}
	return last, nil
}

// get reads what an address answers with 200.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, reply.Status)
	}
	return text, err
}

// gauge is the sum of the values of a metric over all of its labels.
func (k *keeper) gauge(ctx context.Context, metric string) (int, error) {
	text, err := get(ctx, k.address+"/metrics")
	return int(sumOf(string(text), metric)), err
}

// sumOf adds the values of a metric on a page of metrics.
func sumOf(page, metric string) (sum float64) {
	for line := range strings.Lines(page) {
		rest, found := strings.CutPrefix(line, metric)
		if !found || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &value); err == nil {
			sum += value
		}
	}
	return sum
}
