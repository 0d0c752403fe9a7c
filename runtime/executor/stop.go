package executor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/sleep"
)

// stopping is a container that is being stopped.
type stopping struct {
	step    *plan.Step
	ref     podspec.ContainerRef
	id      string
	preStop *v1.LifecycleHandler
	// grace is the time in seconds for hook and signal together; zero or less runs no hook.
	grace int64
	began time.Time
	// parts describe the course of the stop, for its progress line.
	parts []string
}

// stopper stops containers: it runs the hook, waits for the stops before, and sends the signal.
type stopper struct {
	*subject
	hooks *hooks
	// slots limits concurrent stops.
	slots semaphore
}

// stopContainer runs the preStop hook and stops a container; both share its grace period. It returns how the container
// ended.
func (x *stopper) stopContainer(ctx context.Context, s *plan.Step) (string, error) {
	handler, ref := x.hooks.preStopHandler(s)
	summary, err := x.stop(ctx, &stopping{
		step:    s,
		ref:     ref,
		id:      s.ContainerID,
		grace:   *s.GracePeriodSeconds,
		preStop: handler,
	})
	return summary, model.WithReason(model.KillContainerError, err)
}

// stop follows the kubelet's killContainer: the hook, the wait for the stops before, the signal, and the kill at the
// end of the grace period.
func (x *stopper) stop(ctx context.Context, s *stopping) (string, error) {
	s.began = x.now()
	left, waited := s.grace, false
	if s.preStop != nil && s.grace > 0 {
		defer x.preStop(ctx, s)()
		left, waited = x.graceLeft(s), true
	}
	if s.step != nil && len(s.step.Needs.Of(plan.Stop)) > 0 && left > 0 && x.awaitStops(ctx, s) {
		left, waited = x.graceLeft(s), true
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if waited {
		left = max(left, plan.ShortestStop)
	}
	x.report.killedAt(s.step, left)
	signalled := x.now()
	err := x.requestStop(ctx, s, left)
	if err != nil && ctx.Err() != nil {
		return s.summary(), err
	}
	// Only the state of the container counts, because an answer can be lost, and a container also ends if its shim dies
	// during the stop. If the state is unknown, the error of the call counts.
	status, statusErr := x.verifyStopped(ctx, s.id, err)
	if statusErr == nil && status.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
		statusErr = err
	}
	if statusErr != nil {
		return s.summary(), cmp.Or(err, statusErr)
	}
	s.add("%s", ending(status, x.now().Sub(signalled), left))
	return s.summary(), nil
}

// requestStop makes the runtime stop a container. It opens the exit gate as soon as the exit is seen.
func (x *stopper) requestStop(ctx context.Context, s *stopping, grace int64) error {
	watching, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { x.watchExit(watching, s) })
	leave := x.slots.enter()
	_, err := x.client.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: s.id, Timeout: grace})
	leave()
	end()
	group.Wait()
	return cri.IgnoreNotFound(err)
}

// The pauses between two checks of a container's processes. Each is an eighth longer than the one before.
const (
	exitPauseMin = time.Millisecond
	exitPauseMax = 100 * time.Millisecond
)

// watchExit waits until the last process of a container has ended. The runtime's cleanup takes about as long again, and
// some steps need not wait for it. If podctl cannot see the processes, these steps wait for the runtime.
func (x *stopper) watchExit(ctx context.Context, s *stopping) {
	if !x.exitAwaited(s.step) {
		return
	}
	first, err := x.client.Process(ctx, s.id)
	if err != nil {
		return
	}
	occupants, seen := x.cgroups.Occupants(criconfig.CgroupParents(x.plan.Pod.UID, x.node()), s.id, first)
	if !seen {
		return
	}
	defer occupants.Close()
	for pause := exitPauseMin; occupants.Left(); pause = min(pause+pause/8, exitPauseMax) {
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
	x.schedule.gates[s.step.ID].exit()
}

// exitAwaited reports whether a step waits for the exit of a stopped container.
func (x *stopper) exitAwaited(stop *plan.Step) bool {
	if stop == nil {
		return false
	}
	for i := range x.plan.Steps {
		if x.plan.Steps[i].Needs.AwaitsExit(stop.ID) {
			return true
		}
	}
	return false
}

// graceLeft returns the rest of the grace period, in whole seconds. It is zero or less if a hook has used all of it:
// the container then waits for no other one.
func (x *stopper) graceLeft(s *stopping) int64 {
	return s.grace - int64(x.now().Sub(s.began)/time.Second)
}

func preStop(c *v1.Container) *v1.LifecycleHandler {
	if c == nil || c.Lifecycle == nil {
		return nil
	}
	return c.Lifecycle.PreStop
}

// preStop starts the hook and waits for it, at most for the grace period. A hook that takes longer runs on until its
// container ends: the returned function ends it. A failed hook does not prevent the stop (kubelet: executePreStopHook).
func (x *stopper) preStop(ctx context.Context, s *stopping) (end func()) {
	x.report.progress(s.step, "runs its preStop hook")
	began := x.now()
	hookCtx, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		result <- x.hooks.run(hookCtx, s.preStop, s.ref, s.id)
		close(result)
	}()
	graceCtx, stopTimer := context.WithTimeout(ctx, model.Seconds(s.grace))
	defer stopTimer()
	select {
	case err := <-result:
		x.reportHook(ctx, s, x.now().Sub(began), err)
	case <-graceCtx.Done():
		if ctx.Err() == nil {
			x.report.warn(fmt.Sprintf(
				"container %s: preStop hook not completed in the grace period of %ds", s.ref.Name, s.grace))
			x.report.record("FailedPreStopHook", s.ref.Name, "PreStop hook not completed in grace period")
		}
	}
	return func() {
		cancel()
		for range result { // until the hook has ended
		}
	}
}

// reportHook reports the result of a hook. A canceled hook has not failed.
func (x *stopper) reportHook(ctx context.Context, s *stopping, took time.Duration, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		x.report.warn(fmt.Sprintf("container %s: preStop hook failed: %v", s.ref.Name, err))
		x.report.record("FailedPreStopHook", s.ref.Name, fmt.Sprintf("PreStopHook failed: %v", err))
	default:
		s.add("preStop %.1fs", took.Seconds())
	}
}

// awaitStops waits for the stops before this one, at most for the grace period. It reports whether it waited.
func (x *stopper) awaitStops(ctx context.Context, s *stopping) bool {
	ctx, cancel := context.WithTimeout(ctx, model.Seconds(x.graceLeft(s)))
	defer cancel()
	waited := false
	for _, e := range s.step.Needs.Of(plan.Stop) {
		select {
		case <-x.schedule.gates[e.Step].done:
		default:
			waited = true
			x.report.progress(s.step, "waits for the containers that end before it")
		}
		if waited = x.awaitStop(ctx, e.Step) || waited; ctx.Err() != nil {
			break
		}
	}
	return waited
}

// awaitStop waits for one stop. If that stop failed, it waits until the context ends, as the kubelet does, because the
// container may still run. It reports whether that happened.
func (x *stopper) awaitStop(ctx context.Context, id string) bool {
	select {
	case <-x.schedule.gates[id].done:
	case <-ctx.Done():
		return true
	}
	failed := !x.schedule.passed(id)
	if failed {
		<-ctx.Done()
	}
	return failed
}

func (s *stopping) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		s.parts = append(s.parts, text)
	}
}

func (s *stopping) summary() string { return strings.Join(s.parts, ", ") }

// killed is the exit code of a process that SIGKILL ended.
const killed = 137

// ending describes how a container ended: by itself, or killed after its grace period.
func ending(status *runtimeapi.ContainerStatus, took time.Duration, grace int64) string {
	switch {
	case status == nil:
		return ""
	case status.GetExitCode() == killed && took >= model.Seconds(grace):
		return fmt.Sprintf("killed after %ds", grace)
	}
	return "exited " + model.ExitText(status.GetExitCode())
}

// How often podctl checks whether a container has ended. A runtime may report a container as running for a moment after
// the stop. containerd 2 does so for two seconds if its shim was killed. After a failed stop fewer checks are enough,
// unless containerd reports a lost shim, because it then records the exit soon.
const (
	stoppedTries = 100
	failedTries  = 20
	stoppedPause = 50 * time.Millisecond
)

// verifyStopped checks that a container is stopped, even if the stop call failed. It returns the final status; nil if
// the record is gone.
func (x *stopper) verifyStopped(ctx context.Context, id string, stopErr error) (*runtimeapi.ContainerStatus, error) {
	tries := stoppedTries
	if stopErr != nil && !cri.IsBusy(stopErr) {
		tries = failedTries
	}
	for range tries {
		reply, err := x.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil || reply.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			return reply.GetStatus(), cri.IgnoreNotFound(err)
		}
		if err := sleep.For(ctx, stoppedPause); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("container %s is still running although the runtime reported that it stopped it", id)
}
