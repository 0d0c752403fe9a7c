package runtime

import (
	"context"
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// startContainer creates and starts a container and runs its postStart hook.
// Creating and starting are finished once begun; the hook can be interrupted.
func (x *execution) startContainer(ctx context.Context, s *plan.Step) (string, error) {
	ref, err := x.container(s)
	if err != nil {
		return "", err
	}
	x.noteTry(ref)
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

// createAndStart starts a container, and creates it if that has not been done before its
// turn.
func (x *execution) createAndStart(ctx context.Context, ref podspec.ContainerRef, s *plan.Step) (string, error) {
	created, ok := x.takeCreated(s)
	if !ok {
		created.id, created.err = x.create(ctx, ref, s)
	}
	if created.err != nil {
		return "", created.err
	}
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	if err := pod.ClearLog(x.plan.Pod.Namespace, x.plan.Pod.Name, ref.Name, s.Attempt); err != nil {
		return "", because(model.RunContainerError, err)
	}
	if _, err := x.e.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.id}); err != nil {
		return "", because(model.RunContainerError, err)
	}
	if err := pod.LinkLog(x.plan.Pod.Namespace, x.plan.Pod.Name, ref.Name, created.id, s.Attempt); err != nil {
		// Log shippers miss a link; the container runs.
		x.warn(err.Error())
	}
	return created.id, nil
}

func (x *execution) create(ctx context.Context, ref podspec.ContainerRef, s *plan.Step) (string, error) {
	sandbox, err := x.currentSandbox()
	if err != nil {
		return "", because(model.CreateContainerConfigError, err)
	}
	config, err := x.containerConfig(ref, s.Attempt, sandbox.podIPs, mountsForReal)
	if err != nil {
		return "", because(model.CreateContainerConfigError, err)
	}
	if err = x.markDebug(config); err != nil {
		return "", err
	}
	pod := x.e.layout.Pod(x.plan.Pod.UID)
	err = pod.MakeLogDir(x.plan.Pod.Namespace, x.plan.Pod.Name, ref.Name)
	if err == nil {
		// Some runtimes open the log when they create a container.
		err = pod.ClearLog(x.plan.Pod.Namespace, x.plan.Pod.Name, ref.Name, s.Attempt)
	}
	if err != nil {
		return "", because(model.CreateContainerError, err)
	}
	created, err := x.e.client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.sandboxID, Config: config, SandboxConfig: sandbox.config,
	})
	switch {
	case isNotFound(err):
		return "", &surpriseError{err: err}
	case err != nil:
		return "", because(model.CreateContainerError, x.reservedOr(err, ref.Name, s.Attempt))
	}
	return created.GetContainerId(), nil
}

// creation is what came of creating a replacement before its turn.
type creation struct {
	id  string
	err error
}

// createEarly creates a replacement while the container it replaces is stopped. What
// comes of it is told when the start has its turn.
func (x *execution) createEarly(ctx context.Context, s *plan.Step) {
	needs := s.Needs.Of(plan.Create)
	if len(needs) == 0 {
		return
	}
	x.await(needs)
	x.mu.Lock()
	blocked := x.blocked(ctx, needs)
	x.mu.Unlock()
	if blocked {
		return
	}
	x.slots <- struct{}{}
	defer func() { <-x.slots }()
	ref, err := x.container(s)
	made := creation{err: err}
	if err == nil {
		made.id, made.err = x.create(context.WithoutCancel(ctx), ref, s)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.yield.created[s.ID] = made
}

func (x *execution) takeCreated(s *plan.Step) (creation, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	made, ok := x.yield.created[s.ID]
	delete(x.yield.created, s.ID)
	return made, ok
}

// dropCreated removes a replacement that is not started after all. What cannot be
// removed now is a leftover for the next pass.
func (x *execution) dropCreated(ctx context.Context, s *plan.Step) {
	made, ok := x.takeCreated(s)
	if !ok || made.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), busyTimeout)
	defer cancel()
	if err := x.e.removeRecord(ctx, made.id); err != nil {
		x.warn(fmt.Sprintf("container %s: what was created to replace it is left: %v", s.Container, err))
	}
}

// postStart runs the hook after a start. When it fails the container is stopped
// as any other would be, and its restart policy decides what comes next. So it is when the
// hook is ended by who waits for it: the container would run on as if it had succeeded.
func (x *execution) postStart(ctx context.Context, ref podspec.ContainerRef, id string) error {
	err := x.hook(ctx, ref.Lifecycle.PostStart, ref, id)
	if err == nil {
		return nil
	}
	grace := int64(30)
	if own := x.desired.Pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = *own
	}
	s := &stopping{ref: ref, id: id, grace: max(grace, plan.ShortestStop)}
	if grace > 0 {
		s.preStop = preStop(ref.Container)
	}
	_, stopErr := x.stop(context.WithoutCancel(ctx), s)
	return because(model.PostStartHookError, errors.Join(fmt.Errorf("postStart hook: %w", err), stopErr))
}
