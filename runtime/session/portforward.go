package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/remote"
)

// LostPodError reports that the connection to a pod ended unexpectedly: the pod or the runtime was stopped.
type LostPodError struct {
	Pod model.PodRef
	Err error
}

// Error names the pod.
func (e *LostPodError) Error() string {
	return fmt.Sprintf("lost the connection to pod %s: %v", e.Pod, e.Err)
}

// Unwrap returns the cause.
func (e *LostPodError) Unwrap() error { return e.Err }

// PortForward listens on addresses of this machine and forwards connections to the pod, until the context ends or the
// pod is lost.
func (x *Sessions) PortForward(ctx context.Context, desired *podspec.Desired, f *remote.Forwarding) error {
	ref := model.RefOf(desired.Pod)
	numbers, err := portNumbers(desired.Pod, f.Ports)
	if err != nil {
		return err
	}
	address, err := x.forwardAddress(ctx, ref)
	if err != nil {
		return err
	}
	numbered := *f
	numbered.Ports = numbers
	err = remote.Forward(ctx, address, &numbered)
	if refused := (*remote.RefusedError)(nil); errors.As(err, &refused) {
		return &LostPodError{Pod: ref, Err: refused}
	}
	if errors.Is(err, remote.ErrLost) {
		return &LostPodError{Pod: ref, Err: errors.New("the pod or the runtime was stopped")}
	}
	return err
}

func (x *Sessions) forwardAddress(ctx context.Context, ref model.PodRef) (string, error) {
	sandbox, err := x.readySandbox(ctx, ref)
	if err != nil {
		return "", err
	}
	reply, err := x.client.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: sandbox})
	if err != nil {
		return "", fmt.Errorf("forwarding ports of pod %s: %w", ref, err)
	}
	return reply.GetUrl(), nil
}

// readySandbox returns the ID of the pod's running sandbox.
func (x *Sessions) readySandbox(ctx context.Context, ref model.PodRef) (string, error) {
	list, err := x.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: observe.UIDSelector(ref),
		State:         &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}})
	if err == nil {
		err = observe.CheckAllLabels(ref, list.GetItems())
	}
	if err != nil {
		return "", fmt.Errorf("finding pod %s: %w", ref, err)
	}
	if len(list.GetItems()) == 0 {
		return "", fmt.Errorf("pod %s does not run", ref)
	}
	return list.GetItems()[0].GetId(), nil
}

// portNumbers replaces the names of ports with their numbers.
func portNumbers(pod *v1.Pod, ports []string) ([]string, error) {
	numbers := make([]string, 0, len(ports))
	for _, port := range ports {
		local, remote, both := strings.Cut(port, ":")
		if !both {
			local, remote = "", port
		}
		number, err := portNumber(pod, remote)
		if err != nil {
			return nil, err
		}
		if local == "" && !both {
			local = number
		}
		numbers = append(numbers, local+":"+number)
	}
	return numbers, nil
}

func portNumber(pod *v1.Pod, port string) (string, error) {
	if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
		return port, nil
	}
	for _, ref := range podspec.Containers(pod) {
		for _, p := range ref.Ports {
			if p.Name == port {
				return strconv.Itoa(int(p.ContainerPort)), nil
			}
		}
	}
	return "", fmt.Errorf("pod %s has no port %q: give a number from 1 to 65535, or the name of a container's port",
		model.RefOf(pod), port)
}
