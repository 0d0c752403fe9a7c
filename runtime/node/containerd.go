package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// criNamespace is where containerd keeps what belongs to its CRI.
const criNamespace = "k8s.io"

// connect talks to containerd's own API about what belongs to its CRI.
func connect(ctx context.Context, socket string) (*client.Client, context.Context, error) {
	c, err := client.New(socket, client.WithDefaultNamespace(criNamespace))
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to containerd at %s: %w", socket, err)
	}
	return c, namespaces.WithNamespace(ctx, criNamespace), nil
}

// IsStuckTask tells that containerd refuses to remove a container because of a
// task that its CRI has lost: a start that was cut off at the wrong moment leaves
// one behind.
func IsStuckTask(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cannot delete running task")
}

// IsBusy tells that containerd cannot do for a moment what it was asked for: it still does
// what a call began that was cut off, or the shim that it asked had just ended, which it
// learns only afterwards.
func IsBusy(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"is in starting state", "is already in removing state", "ttrpc: closed"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// KillTask ends a task that containerd's CRI has lost, through containerd's own
// API, so that the CRI can remove the container.
func KillTask(ctx context.Context, socket, containerID string) error {
	c, ctx, err := connect(ctx, socket)
	if err != nil {
		return fmt.Errorf("freeing container %s: %w", containerID, err)
	}
	defer c.Close() //nolint:errcheck // the connection has done its work
	container, err := c.LoadContainer(ctx, containerID)
	if err != nil {
		return fmt.Errorf("freeing container %s: %w", containerID, err)
	}
	task, err := container.Task(ctx, nil)
	if err != nil {
		return fmt.Errorf("freeing container %s: %w", containerID, err)
	}
	if _, err := task.Delete(ctx, client.WithProcessKill); err != nil {
		return fmt.Errorf("freeing container %s: %w", containerID, err)
	}
	return nil
}
