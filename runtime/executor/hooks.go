package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

// hookMark is a file that shows other processes that the postStart hook of a container is running. The mark exists from
// before the start until the hook has finished, or until a container whose hook failed has been stopped. The other
// processes show the status from before the start, as a kubelet does. If podctl is killed, the kernel releases the lock
// of the file, and the container counts as started.
type hookMark struct {
	hooks state.Hooks
	// wanted is false for a container without a hook.
	wanted bool
	ended  func() error
}

func (m *hookMark) begin(container string) (err error) {
	if m.wanted {
		m.ended, err = m.hooks.Begin(container)
	}
	return err
}

func (m *hookMark) end() error {
	if m.ended == nil {
		return nil
	}
	return m.ended()
}

// hooks runs the lifecycle hooks of containers.
type hooks struct{ *subject }

// run runs one lifecycle handler (kubelet: handlerRunner.Run). Its output is not shown, because it may contain secrets.
func (x *hooks) run(ctx context.Context, h *v1.LifecycleHandler, ref podspec.ContainerRef, id string) error {
	switch {
	case h.Exec != nil:
		return x.execHook(ctx, h.Exec.Command, id)
	case h.HTTPGet != nil:
		return probe.HTTPHook(ctx, h.HTTPGet, x.target(ref, id))
	case h.Sleep != nil:
		return sleep.For(ctx, model.Seconds(h.Sleep.Seconds))
	}
	return errors.New("a hook must be exec, httpGet or sleep")
}

func (x *hooks) execHook(ctx context.Context, command []string, id string) error {
	reply, err := x.client.RunCommand(ctx, id, command, 0)
	if err != nil {
		return err
	}
	if code := reply.GetExitCode(); code != 0 {
		return &model.KubeletError{
			Err:  fmt.Errorf("%s exited %d", command[0], code),
			Text: fmt.Sprintf("command '%s' exited with %d", strings.Join(command, " "), code),
		}
	}
	return nil
}

// target returns the address for the hooks of a container: that of its own sandbox. New containers may start in another
// sandbox, and the container's sandbox may be about to be deleted.
func (x *hooks) target(ref podspec.ContainerRef, id string) probe.Target {
	own := x.outputs.sandbox()
	sandbox := &own.Sandbox
	if c := x.observed.Newest(func(c *model.Container) bool { return c.ID == id }); c != nil {
		sandbox = x.observed.SandboxOf(c.SandboxID)
	}
	return probe.Target{ContainerID: id, Container: ref.Container, PodIP: sandbox.Address(x.observed.NodeIPs)}
}

// preStopHandler returns the hook of a step: from the manifest, or for a container that left the manifest, from the
// container's annotations. A plan contains no commands.
func (x *hooks) preStopHandler(s *plan.Step) (*v1.LifecycleHandler, podspec.ContainerRef) {
	if s.PreStop == "" {
		return nil, podspec.ContainerRef{Container: &v1.Container{Name: s.Container}}
	}
	if pod := x.manifest(); pod != nil {
		if ref, ok := podspec.FindContainer(pod, s.Container); ok {
			return preStop(ref.Container), ref
		}
	}
	for _, c := range x.snapshot.Containers {
		if a := c.Status.GetAnnotations(); c.Status.GetId() == s.ContainerID {
			ref := podspec.ContainerRef{Container: &v1.Container{Name: s.Container, Ports: criconfig.PortsFrom(a)}}
			return criconfig.PreStopFrom(a), ref
		}
	}
	return nil, podspec.ContainerRef{}
}
