package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/plan"
)

// startContainer creates and starts a container and runs its postStart hook.
// Creating and starting are finished once begun; the hook can be interrupted.
func (x *execution) startContainer(ctx context.Context, s *plan.Step) (string, error) {
	ref, err := x.container(s)
	if err != nil {
		return "", err
	}
	id, err := x.createAndStart(context.WithoutCancel(ctx), ref, s)
	if err != nil {
		x.noteFailure(ref.Name, err)
		return "", err
	}
	x.noteStart(ref, id)
	if s.PostStart == "" {
		return "", nil
	}
	err = x.postStart(ctx, ref, id)
	if err != nil {
		x.mu.Lock()
		delete(x.yield.started, ref.Name)
		x.mu.Unlock()
	}
	return "", err
}

func (x *execution) container(s *plan.Step) (podspec.ContainerRef, error) {
	if x.desired != nil {
		if ref, ok := podspec.FindContainer(x.desired.Pod, s.Container); ok {
			return ref, nil
		}
	}
	return podspec.ContainerRef{}, fmt.Errorf("container %s is not in the manifest", s.Container)
}

func (x *execution) createAndStart(ctx context.Context, ref podspec.ContainerRef, s *plan.Step) (string, error) {
	sandbox, err := x.currentSandbox()
	if err != nil {
		return "", because("CreateContainerConfigError", err)
	}
	config, err := x.containerConfig(ref, s.Attempt, sandbox.podIPs, mountsForReal)
	if err != nil {
		return "", because("CreateContainerConfigError", err)
	}
	if err = x.markDebug(config); err != nil {
		return "", err
	}
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	if err = pod.MakeLogDir(x.plan.Pod.Namespace, x.plan.Pod.Name, ref.Name); err != nil {
		return "", because("CreateContainerError", err)
	}
	created, err := x.e.client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.sandboxID, Config: config, SandboxConfig: sandbox.config,
	})
	switch {
	case isNotFound(err):
		return "", &surpriseError{err: err}
	case err != nil:
		return "", because("CreateContainerError", x.reservedOr(err, ref.Name, s.Attempt))
	}
	id := created.GetContainerId()
	if _, err = x.e.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		return "", because("RunContainerError", err)
	}
	if err = pod.LinkLog(x.plan.Pod.Namespace, x.plan.Pod.Name, ref.Name, id, s.Attempt); err != nil {
		// Log shippers miss a link; the container runs.
		x.warn(err.Error())
	}
	return id, nil
}

// postStart runs the hook after a start. When it fails the container is stopped
// as any other would be, and its restart policy decides what comes next.
func (x *execution) postStart(ctx context.Context, ref podspec.ContainerRef, id string) error {
	err := x.hook(ctx, ref.Lifecycle.PostStart, ref, id)
	if err == nil {
		return nil
	}
	grace := int64(30)
	if own := x.desired.Pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = *own
	}
	_, stopErr := x.stop(ctx, &stopping{ref: ref, id: id, grace: grace, preStop: preStop(ref.Container)})
	return because("PostStartHookError", errors.Join(fmt.Errorf("postStart hook: %w", err), stopErr))
}

// A start that was cut off keeps its container busy for some seconds: containerd
// cleans up after it and refuses to remove it meanwhile.
const (
	busyTimeout = 15 * time.Second
	busyPause   = 100 * time.Millisecond
)

func (x *execution) removeContainer(ctx context.Context, s *plan.Step) error {
	// Its files first: without the record nobody would know that they are there.
	if err := errors.Join(x.removeLogs(s), x.removeLastWords(s)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), busyTimeout)
	defer cancel()
	if err := ignoreNotFound(x.e.removeRecord(ctx, s.ContainerID)); err != nil {
		return err
	}
	// A start that was cut off may have opened its log meanwhile.
	return x.removeLogs(s)
}

// isBusy tells that containerd still does what a call began that was cut off.
func isBusy(err error) bool {
	return strings.Contains(err.Error(), "is in starting state") || strings.Contains(err.Error(), "is already in removing state")
}

// removeRecord removes a container, and waits for one that is still starting, or being
// removed.
func (e *Engine) removeRecord(ctx context.Context, id string) error {
	for {
		_, err := e.client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
		socket := e.client.Endpoint.Socket()
		switch {
		case err == nil:
			return nil
		case node.IsStuckTask(err) && socket != "":
			if killErr := node.KillTask(ctx, socket, id); killErr != nil {
				return errors.Join(err, killErr)
			}
		case !isBusy(err):
			return err
		}
		if sleep(ctx, busyPause) != nil {
			return err
		}
	}
}
