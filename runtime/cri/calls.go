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

// MaxCalls limits the number of parallel calls for one query.
const MaxCalls = 8

// RemoveRecord removes a container. It waits while the container is starting or being removed. A missing container is
// not an error.
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

// stillListed returns notFound if the runtime still lists the container or sandbox. In that case the runtime has lost a
// container of its own behind it and removed nothing.
func (c *Client) stillListed(ctx context.Context, id string, notFound error) error {
	containers, err := c.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{Id: id},
	})
	if err != nil {
		return err
	}
	sandboxes, err := c.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{Id: id},
	})
	if err != nil || len(containers.GetContainers())+len(sandboxes.GetItems()) == 0 {
		return err
	}
	return fmt.Errorf("the runtime has a record of something that it has lost; restart the runtime: %w", notFound)
}

// StopSandbox stops a sandbox. If its shim ends during the call, StopSandbox repeats it, as the CRI allows: otherwise
// its network and mounts are not cleaned up.
func (c *Client) StopSandbox(ctx context.Context, id string) error {
	busy, cancel := context.WithTimeout(ctx, c.BusyTime())
	defer cancel()
	return IgnoreNotFound(containerd.Retry(busy, func(context.Context) error {
		_, err := c.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		return err
	}, nil))
}

// RemoveSandbox removes a sandbox. A missing one is not an error.
func (c *Client) RemoveSandbox(ctx context.Context, id string) error {
	_, err := c.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	if IsNotFound(err) {
		return c.stillListed(ctx, id, err)
	}
	return err
}

// RunCommand runs a command in a container and returns its output and exit code. The timeout is cut to whole seconds; 0
// means no limit.
func (c *Client) RunCommand(
	ctx context.Context, id string, command []string, timeout time.Duration,
) (*runtimeapi.ExecSyncResponse, error) {
	return c.ExecSync(ctx, &runtimeapi.ExecSyncRequest{
		ContainerId: id,
		Cmd:         command,
		Timeout:     int64(timeout / time.Second),
	})
}

// Process returns the process id of a container's first process. The CRI has it only in the verbose details, whose form
// depends on the runtime; containerd and CRI-O use the same key.
func (c *Client) Process(ctx context.Context, id string) (int, error) {
	reply, err := c.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return 0, err
	}
	var info struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(reply.GetInfo()["info"]), &info); err != nil || info.PID == 0 {
		return 0, fmt.Errorf("the runtime at %s does not report the process of container %s", c.Endpoint, id)
	}
	return info.PID, nil
}

// Wrap adds the attempted action to an error. It returns nil for nil.
func Wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// IgnoreNotFound drops the error for a missing container or sandbox, which may vanish between a list and a status call.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// WithRetries repeats ask for up to RetryTime while the runtime does not answer. The runtime may restart while a user
// follows a log or watches probes.
func (c *Client) WithRetries(ctx context.Context, call func() error) error {
	for failingSince := (time.Time{}); ; {
		err := call()
		if failingSince.IsZero() {
			// Start the time after the first failure, because one call may take longer than all retries.
			failingSince = time.Now()
		}
		if gone := (*UnavailableError)(nil); !errors.As(err, &gone) || time.Since(failingSince) > RetryTime {
			return err
		}
		if sleep.For(ctx, RetryPause) != nil {
			return err
		}
	}
}

// BusyTime limits the wait for a container or sandbox that an interrupted call keeps busy: containerd cleans up after
// that call and refuses others meanwhile. The limit covers the longest call, which is for a sandbox.
func (c *Client) BusyTime() time.Duration { return 2 * c.Timeout }

// How long, and at which intervals, calls are repeated while a runtime restarts.
const (
	RetryTime  = time.Minute
	RetryPause = 500 * time.Millisecond
)

// IsBusy reports whether a call failed because the runtime is processing the end of a container or another call for it.
func IsBusy(err error) bool { return containerd.IsBusy(err) }
