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

// nodeAgent runs the pods of a directory: podctl's agent, or a kubelet.
type nodeAgent struct {
	*node

	name string
	// suffix is appended to the names of its pods.
	suffix string
	// command is its process, which serves its metrics at address.
	command []string
	address string
	// running returns the number of running pods that it reports, or -1 before it is ready.
	running func(ctx context.Context) (int, error)
	cmd     *exec.Cmd
}

const (
	agentName   = "podctl agent"
	kubeletName = "a kubelet"
	// kubeletNode is the name of the kubelet's node, which is appended to the names of its pods.
	kubeletNode = "bench"

	// agentLimit limits each wait for an agent.
	agentLimit = 3 * time.Minute
	// agentPods is the maximum number of pods of each: the idle ones, and those that are timed.
	agentPods = 200
	// pollPause is the pause between two queries during a wait.
	pollPause = 5 * time.Millisecond
	// listPause is the pause between lists of containers. Lists cost time that the agent could use, and the times of
	// containers come from the runtime.
	listPause = 50 * time.Millisecond
)

// newPodctlAgent returns podctl's agent.
func newPodctlAgent(ctx context.Context, n *node) (*nodeAgent, error) {
	port, portErr := freePort(ctx)
	listen := "127.0.0.1:" + port
	a := &nodeAgent{node: n, name: agentName, address: "http://" + listen}
	a.command = append([]string{n.o.podctl}, n.args("agent", "--listen", listen, "--max-pods", fmt.Sprint(agentPods),
		"--eviction-hard", "memory.available<1Mi", a.dir("manifests"))...)
	a.running = func(ctx context.Context) (int, error) {
		// It is ready after every pod has had a pass.
		if _, err := get(ctx, a.address+"/readyz"); err != nil {
			return -1, nil //nolint:nilerr // it is not ready
		}
		text, err := get(ctx, a.address+"/metrics")
		return int(sumOf(string(text), "kubelet_running_pods")), err
	}
	return a, errors.Join(portErr, os.MkdirAll(a.dir("manifests"), 0o755))
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
func newKubelet(ctx context.Context, n *node) (*nodeAgent, error) {
	port, portErr := freePort(ctx)
	readOnly, readOnlyErr := freePort(ctx)
	a := &nodeAgent{node: n, name: kubeletName, suffix: "-" + kubeletNode, address: "http://127.0.0.1:" + readOnly}
	a.command = []string{
		n.o.kubelet, "--config", a.dir("config.yaml"), "--root-dir", a.dir("root"), "--cert-dir", a.dir("certificates"),
		"--hostname-override", kubeletNode,
	}
	a.running = func(ctx context.Context) (int, error) {
		text, err := get(ctx, a.address+"/pods")
		if err != nil {
			return -1, nil //nolint:nilerr // it starts
		}
		return runningPods(text)
	}
	text := fmt.Appendf(nil, kubeletConfig, a.dir(""), n.socket(), n.cgroupRoot(), port, readOnly, agentPods)
	return a, errors.Join(
		portErr,
		readOnlyErr,
		os.MkdirAll(a.dir("manifests"), 0o755),
		os.WriteFile(a.dir("config.yaml"), text, 0o600),
	)
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

func (a *nodeAgent) dir(name string) string { return filepath.Join(a.node.dir, "agent", name) }

// start starts the process, and returns once it reports this number of pods.
func (a *nodeAgent) start(ctx context.Context, pods int) error {
	log, err := os.OpenFile(a.dir("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()                                   //nolint:errcheck // the process has it
	cmd := exec.Command(a.command[0], a.command[1:]...) //nolint:noctx // it is ended by a signal
	cmd.Stdout, cmd.Stderr = log, log
	if err = cmd.Start(); err != nil {
		return err
	}
	a.cmd = cmd
	return a.until(ctx, "start", func() (bool, error) {
		running, failed := a.running(ctx)
		return running >= pods, failed
	})
}

// until waits for done. The error has the end of the agent's log.
func (a *nodeAgent) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, agentLimit)
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
			case <-time.After(pollPause):
				continue
			}
		}
		const most = 4096
		text, _ := os.ReadFile(a.dir("log")) // The log is only an explanation.
		return fmt.Errorf("%s does not %s: %w\n%s", a.name, what, err, text[max(0, len(text)-most):])
	}
}

// kill ends the process at once.
func (a *nodeAgent) kill() {
	if a.cmd != nil {
		a.cmd.Process.Kill() //nolint:errcheck // it may have ended
		a.cmd.Wait()         //nolint:errcheck // it ends by the signal
		a.cmd = nil
	}
}

// leave ends the process, and removes its pods and files.
func (a *nodeAgent) leave(ctx context.Context) error {
	a.kill()
	reply, err := a.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	for _, s := range reply.GetItems() {
		err = errors.Join(err, a.removeSandbox(ctx, s.GetId()))
	}
	// A kubelet mounts its directory on itself.
	unmountErr := syscall.Unmount(a.dir("root"), syscall.MNT_DETACH)
	if !errors.Is(unmountErr, syscall.EINVAL) && !errors.Is(unmountErr, syscall.ENOENT) {
		err = errors.Join(err, unmountErr)
	}
	return errors.Join(err, os.RemoveAll(a.dir("")))
}

// put adds or replaces the manifest of a pod atomically.
func (a *nodeAgent) put(name string, s shape) error {
	// Names that begin with a dot are ignored.
	hidden := a.dir("manifests/." + name)
	if err := os.WriteFile(hidden, []byte(s.manifest(name)), 0o600); err != nil {
		return err
	}
	return os.Rename(hidden, a.manifest(name))
}

func (a *nodeAgent) manifest(name string) string { return a.dir("manifests/" + name + ".yaml") }

// drop removes manifests and waits until their pods are gone. A kubelet removes records later, so the bench removes
// them.
func (a *nodeAgent) drop(ctx context.Context, names ...string) (err error) {
	for _, name := range names {
		err = errors.Join(err, os.Remove(a.manifest(name)))
	}
	for _, name := range names {
		err = errors.Join(err, a.until(ctx, "stop "+name, func() (bool, error) {
			left, failed := a.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
				Filter: &runtimeapi.PodSandboxFilter{LabelSelector: a.labels(name)},
			})
			for _, s := range left.GetItems() {
				if a.name == kubeletName && s.GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
					// The kubelet may be removing it, too.
					_, _ = a.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
				}
			}
			return len(left.GetItems()) == 0, failed
		}))
	}
	return err
}

// labels returns the labels of a pod.
func (a *nodeAgent) labels(name string) map[string]string {
	return map[string]string{"io.kubernetes.pod.name": name + a.suffix}
}

// containers returns the running containers of a pod, or of all pods for an empty name.
func (a *nodeAgent) containers(ctx context.Context, name string) ([]*runtimeapi.Container, error) {
	filter := &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}
	if name != "" {
		filter.LabelSelector = a.labels(name)
	}
	reply, err := a.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	return reply.GetContainers(), err
}

// awaitNew waits until count regular containers of a pod run and the last of them is newer than a time.
func (a *nodeAgent) awaitNew(
	ctx context.Context, name string, count int, than time.Time,
) (regular []*runtimeapi.Container, err error) {
	last := fmt.Sprint(regularPrefix, count-1)
	err = a.until(ctx, "start "+name, func() (bool, error) {
		time.Sleep(listPause)
		all, failed := a.containers(ctx, name)
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
func (a *nodeAgent) arrive(ctx context.Context, name string, s shape) ([]*runtimeapi.Container, error) {
	began := time.Now()
	if err := a.put(name, s); err != nil {
		return nil, err
	}
	return a.awaitNew(ctx, name, s.containers, began)
}

// arriveAll writes the manifests of pods with one container, and waits until all run.
func (a *nodeAgent) arriveAll(ctx context.Context, names []string, s shape) error {
	before, err := a.containers(ctx, "")
	for _, name := range names {
		err = errors.Join(err, a.put(name, s))
	}
	if err != nil {
		return err
	}
	return a.until(ctx, fmt.Sprintf("start %d pods", len(names)), func() (bool, error) {
		time.Sleep(listPause)
		now, failed := a.containers(ctx, "")
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
