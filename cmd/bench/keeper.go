package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// keeper runs the pods of a directory: podctl's agent, or a kubelet.
type keeper struct {
	*node

	name string
	// suffix is appended to the names of its pods.
	suffix string
	// command is its process, which serves its metrics at address.
	command []string
	address string
	// known returns the number of running pods that it reports, or -1 before it is ready.
	known func(ctx context.Context) (int, error)
	cmd   *exec.Cmd
}

const (
	agentName   = "podctl agent"
	kubeletName = "a kubelet"
	// kubeletNode is the name of the kubelet's node, which is appended to the names of its pods.
	kubeletNode = "bench"

	// keeperLimit limits each wait for a keeper.
	keeperLimit = 3 * time.Minute
	// keeperPods is the maximum number of pods of each: the idle ones, and those that are timed.
	keeperPods = 200
	// askPause is the pause between two queries during a wait.
	askPause = 5 * time.Millisecond
	// listPause is the pause between lists of containers. Lists cost time that the keeper could use, and the times of
	// containers come from the runtime.
	listPause = 50 * time.Millisecond
)

// newAgent returns podctl's agent.
func newAgent(ctx context.Context, n *node) (*keeper, error) {
	port, portErr := freePort(ctx)
	listen := "127.0.0.1:" + port
	k := &keeper{node: n, name: agentName, address: "http://" + listen}
	k.command = append([]string{n.o.podctl}, n.args("agent", "--listen", listen, "--max-pods", fmt.Sprint(keeperPods),
		"--eviction-hard", "memory.available<1Mi", k.dir("manifests"))...)
	k.known = func(ctx context.Context) (int, error) {
		// It is ready after every pod has had a pass.
		if _, err := get(ctx, k.address+"/readyz"); err != nil {
			return -1, nil //nolint:nilerr // it is not ready
		}
		text, err := get(ctx, k.address+"/metrics")
		return int(sumOf(string(text), "kubelet_running_pods")), err
	}
	return k, errors.Join(portErr, os.MkdirAll(k.dir("manifests"), 0o755))
}

// kubeletConfig is the configuration of a kubelet without an API server. It avoids conflicts with a kubelet of the
// machine.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %[1]s/manifests
containerRuntimeEndpoint: unix://%[2]s
imageServiceEndpoint: unix://%[2]s
cgroupDriver: cgroupfs
cgroupRoot: /%[3]s
podLogsDir: %[1]s/logs
healthzPort: 0
port: %[4]s
readOnlyPort: %[5]s
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

// newKubelet returns a kubelet without an API server, which keeps all its files in its own directory.
func newKubelet(ctx context.Context, n *node) (*keeper, error) {
	port, portErr := freePort(ctx)
	readOnly, readOnlyErr := freePort(ctx)
	k := &keeper{node: n, name: kubeletName, suffix: "-" + kubeletNode, address: "http://127.0.0.1:" + readOnly}
	k.command = []string{
		n.o.kubelet, "--config", k.dir("config.yaml"), "--root-dir", k.dir("root"), "--cert-dir", k.dir("certificates"),
		"--hostname-override", kubeletNode,
	}
	k.known = func(ctx context.Context) (int, error) {
		text, err := get(ctx, k.address+"/pods")
		if err != nil {
			return -1, nil //nolint:nilerr // it starts
		}
		return runningPods(text)
	}
	text := fmt.Appendf(nil, kubeletConfig, k.dir(""), n.socket(), n.cgroupRoot(), port, readOnly, keeperPods)
	return k, errors.Join(portErr, readOnlyErr, os.MkdirAll(k.dir("manifests"), 0o755), os.WriteFile(k.dir("config.yaml"), text, 0o600))
}

// freePort returns a port of this machine on which no process listens.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port, l.Close()
}

// runningPods counts the pods of a list whose phase is Running.
func runningPods(list []byte) (running int, err error) {
	var pods struct {
		Items []struct {
			Status struct{ Phase string }
		}
	}
	err = json.Unmarshal(list, &pods)
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == "Running" {
			running++
		}
	}
	return running, err
}

func (k *keeper) dir(name string) string { return filepath.Join(k.node.dir, "keeper", name) }

// start starts the process, and returns once it reports this number of pods.
func (k *keeper) start(ctx context.Context, pods int) error {
	log, err := os.OpenFile(k.dir("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()                                   //nolint:errcheck // the process has it
	cmd := exec.Command(k.command[0], k.command[1:]...) //nolint:noctx // it is ended by a signal
	cmd.Stdout, cmd.Stderr = log, log
	if err = cmd.Start(); err != nil {
		return err
	}
	k.cmd = cmd
	return k.until(ctx, "start", func() (bool, error) {
		known, failed := k.known(ctx)
		return known >= pods, failed
	})
}

// until waits for done. The error has the end of the keeper's log.
func (k *keeper) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, keeperLimit)
	defer cancel()
	for {
		yes, err := done()
		if yes && err == nil {
			return nil
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(askPause):
				continue
			}
		}
		const most = 4096
		text, _ := os.ReadFile(k.dir("log")) // The log is only an explanation.
		return fmt.Errorf("%s does not %s: %w\n%s", k.name, what, err, text[max(0, len(text)-most):])
	}
}

// kill ends the process at once.
func (k *keeper) kill() {
	if k.cmd != nil {
		k.cmd.Process.Kill() //nolint:errcheck // it may have ended
		k.cmd.Wait()         //nolint:errcheck // it ends by the signal
		k.cmd = nil
	}
}

// leave ends the process, and removes its pods and files.
func (k *keeper) leave(ctx context.Context) error {
	k.kill()
	reply, err := k.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	for _, s := range reply.GetItems() {
		err = errors.Join(err, k.removeSandbox(ctx, s.GetId()))
	}
	// A kubelet mounts its directory on itself.
	unmountErr := syscall.Unmount(k.dir("root"), syscall.MNT_DETACH)
	if !errors.Is(unmountErr, syscall.EINVAL) && !errors.Is(unmountErr, syscall.ENOENT) {
		err = errors.Join(err, unmountErr)
	}
	return errors.Join(err, os.RemoveAll(k.dir("")))
}

// put adds or replaces the manifest of a pod atomically.
func (k *keeper) put(name string, s shape) error {
	// Names that begin with a dot are ignored.
	hidden := k.dir("manifests/." + name)
	if err := os.WriteFile(hidden, []byte(s.manifest(name)), 0o600); err != nil {
		return err
	}
	return os.Rename(hidden, k.manifest(name))
}

func (k *keeper) manifest(name string) string { return k.dir("manifests/" + name + ".yaml") }

// drop removes manifests and waits until their pods are gone. A kubelet removes records later, so the bench removes
// them.
func (k *keeper) drop(ctx context.Context, names ...string) (err error) {
	for _, name := range names {
		err = errors.Join(err, os.Remove(k.manifest(name)))
	}
	for _, name := range names {
		err = errors.Join(err, k.until(ctx, "stop "+name, func() (bool, error) {
			left, failed := k.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: k.labels(name)}})
			for _, s := range left.GetItems() {
				if k.name == kubeletName && s.GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
					// The kubelet may be removing it, too.
					_, _ = k.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
				}
			}
			return len(left.GetItems()) == 0, failed
		}))
	}
	return err
}

// labels returns the labels of a pod.
func (k *keeper) labels(name string) map[string]string {
	return map[string]string{"io.kubernetes.pod.name": name + k.suffix}
}

// containers returns the running containers of a pod, or of all pods for an empty name.
func (k *keeper) containers(ctx context.Context, name string) ([]*runtimeapi.Container, error) {
	filter := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	if name != "" {
		filter.LabelSelector = k.labels(name)
	}
	reply, err := k.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	return reply.GetContainers(), err
}

// awaitNew waits until count regular containers of a pod run and the last of them is newer than a time.
func (k *keeper) awaitNew(ctx context.Context, name string, count int, than time.Time) (regular []*runtimeapi.Container, err error) {
	last := fmt.Sprint(regularPrefix, count-1)
	err = k.until(ctx, "start "+name, func() (bool, error) {
		time.Sleep(listPause)
		all, failed := k.containers(ctx, name)
		regular = slices.DeleteFunc(all, func(c *runtimeapi.Container) bool {
			return !strings.HasPrefix(c.GetMetadata().GetName(), regularPrefix)
		})
		young := slices.ContainsFunc(regular, func(c *runtimeapi.Container) bool {
			return c.GetMetadata().GetName() == last && c.GetCreatedAt() > than.UnixNano()
		})
		return young && len(regular) == count, failed
	})
	return regular, err
}

// arrive writes a manifest, and waits until the last container of its pod is a new one.
func (k *keeper) arrive(ctx context.Context, name string, s shape) ([]*runtimeapi.Container, error) {
	began := time.Now()
	if err := k.put(name, s); err != nil {
		return nil, err
	}
	return k.awaitNew(ctx, name, s.containers, began)
}

// arriveAll writes the manifests of pods with one container, and waits until all run.
func (k *keeper) arriveAll(ctx context.Context, names []string, s shape) error {
	before, err := k.containers(ctx, "")
	for _, name := range names {
		err = errors.Join(err, k.put(name, s))
	}
	if err != nil {
		return err
	}
	return k.until(ctx, fmt.Sprintf("start %d pods", len(names)), func() (bool, error) {
		time.Sleep(listPause)
		now, failed := k.containers(ctx, "")
		return len(now) == len(before)+len(names), failed
	})
}

// get returns a page that is answered with 200.
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

// sumOf sums the values of a metric on a page of metrics.
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
