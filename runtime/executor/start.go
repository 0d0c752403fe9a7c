package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// starter creates, starts, checks and updates containers.
type starter struct {
	*subject
	stop *stopper
}

// startContainer creates and starts a container and runs its postStart hook. Creation and start cannot be interrupted,
// the hook can.
func (x *starter) startContainer(ctx context.Context, s *plan.Step) (string, error) {
	ref, err := x.container(s)
	if err != nil {
		return "", err
	}
	x.noteTry(ref)
	hook := &hookMark{hooks: x.pod.Hooks(), wanted: s.PostStart != ""}
	defer func() {
		if endErr := hook.end(); endErr != nil {
			x.report.warn(fmt.Sprintf(
				"container %s: cannot remove the mark of its running postStart hook: %v", s.Container, endErr))
		}
	}()
	id, err := x.createAndStart(context.WithoutCancel(ctx), ref, s, hook)
	if err != nil {
		x.checkpoint.noteFailure(ref.Name, err)
		return "", err
	}
	x.outputs.setStarted(ref.Name, id)
	x.checkpoint.note(func(c *state.Checkpoint) {
		c.MarkCreated(ref.Name)
		delete(c.StartErrors, ref.Name)
		delete(c.PendingRestarts, ref.Name)
	})
	if s.PostStart == "" {
		return "", nil
	}
	err = x.postStart(ctx, ref, id)
	if r, ok := errors.AsType[*model.ReasonError](err); ok && r.Stopped {
		x.outputs.dropStarted(ref.Name)
		x.checkpoint.noteFailure(ref.Name, err)
	}
	return "", err
}

// noteTry records the restart delay after this start, even if the start fails (kubelet: doBackOff).
func (x *starter) noteTry(ref podspec.ContainerRef) {
	observed := x.snapshot.Observed(x.plan.Pod, nil)
	// The delay counts from this exit.
	exited := observed.Newest(func(c *model.Container) bool { return c.Name == ref.Name && c.State == model.Exited })
	if exited == nil {
		return
	}
	key := spechash.Container(x.desired, ref.Container)
	x.checkpoint.note(func(c *state.Checkpoint) {
		if c.Backoffs == nil {
			c.Backoffs = map[string]model.Backoff{}
		}
		b := c.Backoffs[ref.Name]
		if digest.Compare(b.Key, key) == digest.Different {
			b = model.Backoff{}
		}
		b = b.Advance(exited.FinishedAt, x.now())
		b.Key = key
		c.Backoffs[ref.Name] = b
	})
}

// createAndStart starts a container, and creates it unless that was done earlier. A container with a postStart hook is
// marked before its start, so that other processes do not regard it as started before the hook has finished.
func (x *starter) createAndStart(
	ctx context.Context, ref podspec.ContainerRef, s *plan.Step, hook *hookMark,
) (string, error) {
	created, ok := x.outputs.takeCreated(s.ID)
	if !ok {
		created.id, created.err = x.create(ctx, ref, s)
	}
	if created.err != nil {
		return "", created.err
	}
	if err := x.logs().Clear(ref.Name, s.Attempt); err != nil {
		return "", startError(err)
	}
	if err := hook.begin(created.id); err != nil {
		return "", startError(err)
	}
	if _, err := x.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.id}); err != nil {
		return "", startError(err)
	}
	if err := x.logs().Link(ref.Name, created.id, s.Attempt); err != nil {
		// Only log shippers need the link; the container runs.
		x.report.warn(err.Error())
	}
	return created.id, nil
}

func (x *starter) create(ctx context.Context, ref podspec.ContainerRef, s *plan.Step) (string, error) {
	sandbox, err := x.sandbox()
	if err != nil {
		return "", model.WithReason(model.CreateContainerConfigError, err)
	}
	devices, err := x.devices(ctx, ref)
	if err != nil {
		return "", model.WithReason(model.CreateContainerConfigError, err)
	}
	config, err := x.message(ref, s.Attempt, sandbox.IPs, devices)
	if err != nil {
		return "", model.WithReason(model.CreateContainerConfigError, err)
	}
	if err = x.markDebug(config); err != nil {
		return "", err
	}
	err = x.logs().Make(ref.Name)
	if err == nil {
		// Some runtimes open the log when they create a container.
		err = x.logs().Clear(ref.Name, s.Attempt)
	}
	if err != nil {
		return "", model.WithReason(model.CreateContainerError, err)
	}
	created, err := x.client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.ID, Config: config, SandboxConfig: sandbox.config,
	})
	switch {
	case cri.IsNotFound(err):
		return "", &StateChangedError{err: err}
	case err != nil:
		return "", model.WithReason(model.CreateContainerError, reservedOr(err, ref.Name, s.Attempt))
	}
	return created.GetContainerId(), nil
}

// createEarly creates a replacement before its start.
func (x *starter) createEarly(ctx context.Context, s *plan.Step) {
	ref, err := x.container(s)
	made := creation{err: err}
	if err == nil {
		made.id, made.err = x.create(context.WithoutCancel(ctx), ref, s)
	}
	x.outputs.setCreated(s.ID, made)
}

// dropCreated removes a replacement that does not start after all. If that fails, the next pass removes it.
func (x *starter) dropCreated(ctx context.Context, s *plan.Step) {
	made, ok := x.outputs.takeCreated(s.ID)
	if !ok || made.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.client.BusyTime())
	defer cancel()
	if err := x.client.RemoveRecord(ctx, made.id); err != nil {
		x.report.warn(fmt.Sprintf(
			"container %s: the container created to replace it could not be removed: %v", s.Container, err))
	}
}

// postStart runs the hook after a start. If the hook fails, the container is stopped like any other, and its restart
// policy applies. The same happens if the caller cancels the hook, because the container must not continue as if the
// hook had succeeded. An agent that exits leaves the container running, as a kubelet does.
func (x *starter) postStart(ctx context.Context, ref podspec.ContainerRef, id string) error {
	err := x.stop.hooks.run(ctx, ref.Lifecycle.PostStart, ref, id)
	if err == nil {
		return nil
	}
	failure := &hookFailure{pod: x.plan.Pod, ref: ref, handler: ref.Lifecycle.PostStart, err: err}
	if x.opts.Watched && ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrOutdated) {
		return failure
	}
	grace := int64(30)
	if own := x.desired.Pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = *own
	}
	s := &stopping{ref: ref, id: id, grace: max(grace, plan.ShortestStop)}
	if grace > 0 {
		s.preStop = preStop(ref.Container)
	}
	_, stopErr := x.stop.stop(context.WithoutCancel(ctx), s)
	return hookError(errors.Join(failure, stopErr))
}

// markDebug writes the definition of a debug container into its annotations.
func (x *starter) markDebug(config *runtimeapi.ContainerConfig) error {
	if x.opts.Debug == nil {
		return nil
	}
	text, err := json.Marshal(x.opts.Debug)
	if err != nil {
		return fmt.Errorf("marking the debug container: %w", err)
	}
	config.Annotations[criconfig.AnnotationDebug] = string(text)
	return nil
}

// updateContainer changes cpu and memory of a running container, and records the change.
func (x *starter) updateContainer(ctx context.Context, s *plan.Step) error {
	ref, err := x.container(s)
	if err != nil {
		return err
	}
	_, err = x.client.UpdateContainerResources(context.WithoutCancel(ctx), &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: s.ContainerID, Linux: criconfig.Resources(x.desired.Pod, ref, x.node()),
	})
	if err != nil {
		return model.WithReason(model.ResizePodInPlaceError, err)
	}
	x.checkpoint.note(func(c *state.Checkpoint) {
		if c.Actuated.Containers == nil {
			c.Actuated.Containers = map[string]v1.ResourceRequirements{}
		}
		c.Actuated.Containers[ref.Name] = ref.Resources
	})
	return nil
}

// reservedOr turns the runtime's "name is reserved" error into a StateChangedError, so that the next plan chooses
// another attempt.
func reservedOr(err error, name string, attempt uint32) error {
	if strings.Contains(err.Error(), "is reserved for") {
		return &StateChangedError{name: name, attempt: attempt, reserved: true, err: err}
	}
	return err
}

// allocateDevices allocates the devices of a step. If another pod has got one meanwhile, the caller makes a new plan.
func (x *starter) allocateDevices(ctx context.Context, s *plan.Step) error {
	err := x.Devices.AllocateDevices(ctx, x.plan.Pod.UID, s.Container, s.Devices)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, model.ErrDevicesTaken):
		return &StateChangedError{err: err}
	case ctx.Err() != nil:
		return err // The pass was interrupted; the next one tries again.
	}
	err = model.WithReason(model.UnexpectedAdmissionError, err)
	if s.OnFailure == plan.Reject {
		text := model.AllocateFailed(x.report.redactor.Text(err.Error()))
		x.checkpoint.note(func(c *state.Checkpoint) {
			c.Rejection = &model.Rejection{Reason: model.UnexpectedAdmissionError, Message: text, At: x.now()}
		})
	} else {
		x.checkpoint.noteFailure(s.Container, err)
	}
	return err
}

// devices prepares the devices of a container for its start; nil if it has none.
func (x *starter) devices(ctx context.Context, ref podspec.ContainerRef) (*model.DeviceConfig, error) {
	if len(x.observed.Devices.Of(ref.Name)) == 0 {
		return nil, nil
	}
	config, err := x.Devices.PrepareDevices(ctx, x.plan.Pod.UID, ref.Name)
	if errors.Is(err, model.ErrDevicesTaken) {
		err = &StateChangedError{err: err}
	}
	return config, err
}
