package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/remote"
	"github.com/podctl/podctl/runtime/snapshot"
)

// Sessions accesses running pods: commands, streams, logs, files and usage.
type Sessions struct {
	client   *cri.Client
	observer *observe.Observer
}

// New returns Sessions.
func New(client *cri.Client, observer *observe.Observer) *Sessions {
	return &Sessions{client: client, observer: observer}
}

// WithDebug returns the manifest with the debug containers that were added to the running pod, for commands that work
// on one of its containers.
func (x *Sessions) WithDebug(ctx context.Context, desired *podspec.Desired) (*podspec.Desired, error) {
	ref := model.RefOf(desired.Pod)
	list, err := x.observer.ListContainers(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("finding the containers of pod %s: %w", ref, err)
	}
	notes := make([]map[string]string, 0, len(list))
	for _, c := range list {
		notes = append(notes, c.GetAnnotations())
	}
	return snapshot.WithDebug(desired, notes), nil
}

// Command is a command for a running container.
type Command struct {
	Args []string
	// User is the user that runs the command: a name or number, optionally with :GROUP. Dir is its directory. Env are
	// variables (NAME=VALUE) that override those of the container. If empty, the container's values apply.
	User string
	Dir  string
	Env  []string
}

// Differs reports whether the command has another user, directory or environment than the container's process.
func (c *Command) Differs() bool { return c.User != "" || c.Dir != "" || len(c.Env) > 0 }

// Exec runs a command in a running container, and returns when it has ended. An exit code other than zero is an
// ExitError.
func (x *Sessions) Exec(
	ctx context.Context, desired *podspec.Desired, container string, command *Command, s *remote.Streams,
) error {
	id, err := x.running(ctx, desired, container)
	if err != nil {
		return err
	}
	if command.Differs() {
		err = x.execAs(ctx, &target{desired, container, id}, command, s)
	} else {
		err = remote.Carry(ctx, s, func() (string, error) {
			reply, execErr := x.client.Exec(ctx, &runtimeapi.ExecRequest{
				ContainerId: id, Cmd: command.Args, Tty: s.Terminal,
				Stdin: s.In != nil, Stdout: s.Out != nil, Stderr: s.Err != nil && !s.Terminal,
			})
			return reply.GetUrl(), execErr
		})
	}
	if exit := (*remote.ExitError)(nil); err == nil || errors.As(err, &exit) || ctx.Err() != nil {
		return err
	}
	return &ExecError{Container: container, Pod: model.RefOf(desired.Pod), Command: command.Args[0], Err: err}
}

// ExecError reports that a command could not be run in a container, or that the connection to it was lost.
type ExecError struct {
	Pod       model.PodRef
	Container string
	Command   string
	Err       error
}

// Error names the command and the container. It removes the outer layers of the runtime's message.
func (e *ExecError) Error() string {
	text := e.Err.Error()
	for _, layer := range []string{"error executing command in container: ", "unable to start container process: "} {
		if _, inner, found := strings.Cut(text, layer); found {
			text = inner
		}
	}
	return fmt.Sprintf("pod %s: container %s: running %s: %s", e.Pod, e.Container, e.Command, text)
}

// Unwrap returns the cause.
func (e *ExecError) Unwrap() error { return e.Err }

// NoCommand reports whether the container does not have the program.
func (e *ExecError) NoCommand() bool {
	text := e.Err.Error()
	if strings.Contains(text, "chdir to cwd") {
		return false // The directory is missing, not the program.
	}
	return strings.Contains(text, "no such file or directory") || strings.Contains(text, "executable file not found")
}

// Attach connects to the main process of a running container, until the process or the input ends.
func (x *Sessions) Attach(ctx context.Context, desired *podspec.Desired, container string, s *remote.Streams) error {
	id, err := x.running(ctx, desired, container)
	if err != nil {
		return err
	}
	patient := *s
	patient.In = remote.DelayEnd(s.In)
	return remote.Carry(ctx, &patient, func() (string, error) {
		reply, err := x.client.Attach(ctx, &runtimeapi.AttachRequest{
			ContainerId: id, Tty: s.Terminal,
			Stdin: s.In != nil, Stdout: s.Out != nil, Stderr: s.Err != nil && !s.Terminal,
		})
		return reply.GetUrl(), err
	})
}

// running returns the ID of the newest running container with a name.
func (x *Sessions) running(ctx context.Context, desired *podspec.Desired, name string) (string, error) {
	ref := model.RefOf(desired.Pod)
	list, err := x.observer.ListNewestFirst(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("finding container %s: %w", name, err)
	}
	for _, c := range list {
		if c.GetMetadata().GetName() == name && c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			return c.GetId(), nil
		}
	}
	return "", fmt.Errorf("container %s of pod %s does not run (`podctl get --containers %s` shows its state)",
		name, ref, desired.Pod.Name)
}
