package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/sleep"
)

// MaxCalls bounds the calls that one look at many things makes at the same time.
const MaxCalls = 8

// RemoveRecord removes a container, and waits for one that is still starting, or being
// removed. One that is not there is no error.
func (c *Client) RemoveRecord(ctx context.Context, id string) error {
	var free func(context.Context) error
	if socket := c.Endpoint.Socket(); socket != "" {
		free = func(ctx context.Context) error { return containerd.KillTask(ctx, socket, id) }
	}
	return containerd.Retry(ctx, func(ctx context.Context) error {
		_, err := c.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
		if IsNotFound(err) {
			return c.stillListed(ctx, id, err)
		}
		return err
	}, free)
}

// stillListed judges a removal that failed as something was not found: what the runtime
// lists on, containers of its own behind it may have lost, and then it removes nothing.
func (c *Client) stillListed(ctx context.Context, id string, notFound error) error {
	containers, err := c.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: id}})
	if err != nil {
		return err
	}
	sandboxes, err := c.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{Id: id}})
	if err != nil || len(containers.GetContainers())+len(sandboxes.GetItems()) == 0 {
		return err
	}
	return fmt.Errorf("the runtime has lost what is behind a record, and keeps that; once it is restarted this works: %w", notFound)
}

// StopSandbox stops a sandbox. One whose shim ends while it is asked to is stopped
// again, as the CRI allows: only then are its network and its mounts cleared up.
func (c *Client) StopSandbox(ctx context.Context, id string) error {
	busy, cancel := context.WithTimeout(ctx, c.BusyTime())
	defer cancel()
	return IgnoreNotFound(containerd.Retry(busy, func(context.Context) error {
		_, err := c.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		return err
	}, nil))
}

// RemoveSandbox removes a sandbox. One that is not there is no error.
func (c *Client) RemoveSandbox(ctx context.Context, id string) error {
	_, err := c.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	if IsNotFound(err) {
		return c.stillListed(ctx, id, err)
	}
	return err
}

// RunCommand runs a command in a container and returns what it printed and its exit code. The
// timeout is in whole seconds; none means as long as it takes.
func (c *Client) RunCommand(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error) {
	return c.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: int64(timeout / time.Second)})
}

// Process asks the runtime for the number of a container's first process. The CRI
// has it among the details that each runtime tells in its own way; containerd and
// CRI-O agree on this one.
func (c *Client) Process(ctx context.Context, id string) (int, error) {
	reply, err := c.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return 0, err
	}
	var info struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(reply.GetInfo()["info"]), &info); err != nil || info.PID == 0 {
		return 0, fmt.Errorf("the runtime at %s does not tell which process container %s is", c.Endpoint, id)
	}
	return info.PID, nil
}

// Wrap says what was done when an error came.
func Wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// IgnoreNotFound takes what vanished between a list and a status as gone.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// WithRetries asks again, for a minute, when the runtime does not answer: it may be restarted
// while somebody follows a log or watches probes.
func (c *Client) WithRetries(ctx context.Context, ask func() error) error {
	for silent := (time.Time{}); ; {
		err := ask()
		if silent.IsZero() {
			// A call may take longer than the retries do.
			silent = time.Now()
		}
		if gone := (*UnavailableError)(nil); !errors.As(err, &gone) || time.Since(silent) > RetryTime {
			return err
		}
		if sleep.For(ctx, RetryPause) != nil {
			return err
		}
	}
}

// BusyTime bounds the wait for a container or a sandbox that a call which was cut off keeps busy: containerd cleans up after it, and refuses
// other calls meanwhile. It includes these calls, and so it is as long as they may take: a sandbox takes longest.
func (c *Client) BusyTime() time.Duration { return 2 * c.Timeout }

// A runtime that is restarted is waited for: how long, and how often it is asked.
const (
	RetryTime  = time.Minute
	RetryPause = 500 * time.Millisecond
)

// IsBusy reports whether a call failed because the runtime is about to take note of something: the
// end of a container, or another call for it.
func IsBusy(err error) bool { return containerd.IsBusy(err) }
