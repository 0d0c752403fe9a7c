package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
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
	stopErr := x.stop(ctx, id, grace, preStop(ref.Container), ref)
	return because("PostStartHookError", errors.Join(fmt.Errorf("postStart hook: %w", err), stopErr))
}

func preStop(c *v1.Container) *v1.LifecycleHandler {
	if c == nil || c.Lifecycle == nil {
		return nil
	}
	return c.Lifecycle.PreStop
}

// stopContainer runs the preStop hook and stops a container within its grace
// period, both together.
func (x *execution) stopContainer(ctx context.Context, s *plan.Step) error {
	handler, ref := x.preStopHandler(s)
	return because("KillContainerError", x.stop(ctx, s.ContainerID, *s.GracePeriodSeconds, handler, ref))
}

// shortestStop is the shortest time a container gets to end after its preStop
// hook has used up its grace period, in seconds (kubelet:
// minimumGracePeriodInSeconds).
const shortestStop = 2

func (x *execution) stop(ctx context.Context, id string, grace int64, handler *v1.LifecycleHandler, ref podspec.ContainerRef) error {
	left := grace
	if handler != nil && grace > 0 {
		left = max(grace-x.preStop(ctx, handler, ref, id, grace), shortestStop)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := x.e.client.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: left}); err != nil {
		return ignoreNotFound(err)
	}
	return x.verifyStopped(ctx, id)
}

// preStop runs the hook for as long as the grace period lasts, and returns how
// many whole seconds of it were used. A hook that fails does not keep the
// container from being stopped.
func (x *execution) preStop(ctx context.Context, handler *v1.LifecycleHandler, ref podspec.ContainerRef, id string, grace int64) int64 {
	began := x.e.now()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(grace)*time.Second)
	defer cancel()
	if err := x.hook(ctx, handler, ref, id); err != nil {
		x.warn(fmt.Sprintf("container %s: preStop hook failed: %v", ref.Name, err))
	}
	return int64(x.e.now().Sub(began) / time.Second)
}

// A runtime may report a container as running for a moment after it has said
// that it is stopped.
const (
	stoppedTries = 20
	stoppedPause = 50 * time.Millisecond
)

// verifyStopped makes sure that what the runtime says it stopped is stopped.
func (x *execution) verifyStopped(ctx context.Context, id string) error {
	for range stoppedTries {
		reply, err := x.e.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil || reply.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			return ignoreNotFound(err)
		}
		if err := sleep(ctx, stoppedPause); err != nil {
			return err
		}
	}
	return fmt.Errorf("container %s still runs although the runtime says it was stopped", id)
}

// A start that was cut off keeps its container busy for some seconds: containerd
// cleans up after it and refuses to remove it meanwhile.
const (
	busyTimeout = 15 * time.Second
	busyPause   = 100 * time.Millisecond
)

func (x *execution) removeContainer(ctx context.Context, s *plan.Step) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), busyTimeout)
	defer cancel()
	err := x.e.removeRecord(ctx, s.ContainerID)
	if err != nil && !isNotFound(err) {
		return err
	}
	return x.removeLogs(s)
}

// removeRecord removes a container, and waits for one that is still starting.
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
		case !strings.Contains(err.Error(), "is in starting state"):
			return err
		}
		if sleep(ctx, busyPause) != nil {
			return err
		}
	}
}
