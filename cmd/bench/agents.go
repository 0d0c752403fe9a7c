package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// nodeAgent runs the pods of its node's directory of manifests: podctl's agent, or a kubelet.
type nodeAgent struct {
	*node

	name string
	// suffix is appended to the names of its pods.
	suffix string
	// command is its process.
	command []string
	// pages are requested one after the other. It is ready when all are answered. running returns the number of running
	// pods on the last page.
	pages   []string
	running func(page string) int
	cmd     *exec.Cmd
	// idlers are the containers of the idle pods.
	idlers []*runtimeapi.Container
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
	// pollPause is the pause between two queries of an agent that starts.
	pollPause = 5 * time.Millisecond
	// listPause is the pause between lists of containers. Lists cost time that the agent could use, and the times of
	// containers come from the runtime.
	listPause = 50 * time.Millisecond
)

// podctlAgent returns podctl's agent.
func (n *node) podctlAgent(*options) (*nodeAgent, error) {
	const listen = "127.0.0.1:20248"
	return &nodeAgent{
		node: n, name: agentName,
		command: append(n.podctl, "agent", "--listen", listen, "--max-pods", fmt.Sprint(agentPods),
			"--eviction-hard", "memory.available<1Mi", n.path("manifests")),
		// It is ready after every pod has had a pass.
		pages: []string{"http://" + listen + "/readyz", "http://" + listen + "/metrics"}, running: runningMetric,
	}, nil
}

// kubeletConfig is the configuration of a kubelet without an API server, which keeps all its files in its own
// directory. It avoids conflicts with a kubelet of the machine.
//
//go:embed kubelet.yaml
var kubeletConfig string

// kubelet returns a kubelet.
func (n *node) kubelet(o *options) (*nodeAgent, error) {
	a := &nodeAgent{
		node: n, name: kubeletName, suffix: "-" + kubeletNode,
		command: []string{
			o.kubelet, "--config", n.path("config.yaml"), "--root-dir", n.path("root"),
			"--cert-dir", n.path("certificates"), "--hostname-override", kubeletNode,
		},
		pages: []string{"http://127.0.0.1:20255/pods"}, running: runningPods,
	}
	config := fmt.Appendf(nil, kubeletConfig, n.dir, n.endpoint(), n.cgroupRoot(), agentPods)
	return a, os.WriteFile(n.path("config.yaml"), config, 0o600)
}

// runningMetric returns the number of running pods on a page of metrics.
func runningMetric(metrics string) (running int) {
	_, value, _ := strings.Cut(metrics, "\nkubelet_running_pods ")
	fmt.Sscan(value, &running) //nolint:errcheck // it stays zero if there is none
	return running
}

// runningPods counts the pods of a list in JSON whose phase is Running.
func runningPods(list string) int { return strings.Count(list, `"phase":"Running"`) }

// start starts the process, and returns once it reports this number of pods.
func (a *nodeAgent) start(ctx context.Context, pods int) error {
	log, err := os.OpenFile(a.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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
	return a.until(ctx, "start", pollPause, func() (bool, error) {
		last, answered := "", true
		for i := 0; i < len(a.pages) && answered; i++ {
			last, answered = get(ctx, a.pages[i])
		}
		return answered && a.running(last) >= pods, nil
	})
}

// get returns a page, and whether it is answered with 200.
func get(ctx context.Context, url string) (page string, answered bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", false
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", false
	}
	defer reply.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(reply.Body)
	return string(text), err == nil && reply.StatusCode == http.StatusOK
}

// until waits for done. The error has the end of the agent's log.
func (a *nodeAgent) until(ctx context.Context, what string, pause time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, agentLimit)
	defer cancel()
	yes, err := done()
	for !yes && err == nil {
		time.Sleep(pause)
		if yes, err = done(); err == nil {
			err = ctx.Err()
		}
	}
	if err == nil {
		return nil
	}
	const most = 4096
	text, _ := os.ReadFile(a.path("log")) // The log is only an explanation.
	return fmt.Errorf("%s does not %s: %w\n%s", a.name, what, err, text[max(0, len(text)-most):])
}

// kill ends the process at once.
func (a *nodeAgent) kill() {
	if a.cmd != nil {
		a.cmd.Process.Kill() //nolint:errcheck // it may have ended
		a.cmd.Wait()         //nolint:errcheck // it ends by the signal
		a.cmd = nil
	}
}

// close ends the process, and removes its node with its pods.
func (a *nodeAgent) close(ctx context.Context) error {
	a.kill()
	// A kubelet mounts its directory on itself.
	err := syscall.Unmount(a.path("root"), syscall.MNT_DETACH)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOENT) {
		err = nil
	}
	return errors.Join(err, a.node.close(ctx))
}

// drop removes manifests and waits until their pods are gone. A kubelet removes records later, so the bench removes
// them.
func (a *nodeAgent) drop(ctx context.Context, names ...string) (err error) {
	for _, name := range names {
		err = errors.Join(err, os.Remove(a.manifest(name)))
	}
	for _, name := range names {
		err = errors.Join(err, a.until(ctx, "stop "+name, pollPause, func() (bool, error) {
			left, failed := a.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
				Filter: &runtimeapi.PodSandboxFilter{LabelSelector: a.labels(name)},
			})
			for _, s := range left.GetItems() {
				if a.name == kubeletName && s.GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
					// The kubelet may be removing it, too.
					a.removeSandbox(s.GetId())(ctx) //nolint:errcheck // as above
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

// arrive writes the manifests of pods, and waits until they run. It returns the start of the last container, by the
// runtime.
func (a *nodeAgent) arrive(ctx context.Context, s shape, names ...string) (last time.Time, err error) {
	began := time.Now()
	for _, name := range names {
		err = errors.Join(err, a.put(name, s, name)(ctx))
	}
	for _, name := range names {
		if err != nil {
			return last, err
		}
		var containers []*runtimeapi.Container
		containers, err = a.awaitNew(ctx, name, s.containers, began)
		for _, c := range containers {
			reply, failed := a.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()})
			err = errors.Join(err, failed)
			if at := time.Unix(0, reply.GetStatus().GetStartedAt()); at.After(last) {
				last = at
			}
		}
	}
	return last, err
}

// awaitNew waits until count regular containers of a pod run and the last of them is newer than a time. Init containers
// have ended then.
func (a *nodeAgent) awaitNew(
	ctx context.Context, name string, count int, than time.Time,
) (all []*runtimeapi.Container, err error) {
	last := fmt.Sprint(regularPrefix, count-1)
	err = a.until(ctx, "start "+name, listPause, func() (young bool, failed error) {
		all, failed = a.containers(ctx, name)
		young = slices.ContainsFunc(all, func(c *runtimeapi.Container) bool {
			return c.GetMetadata().GetName() == last && c.GetCreatedAt() > than.UnixNano()
		})
		return young && len(all) == count, failed
	})
	return all, err
}
