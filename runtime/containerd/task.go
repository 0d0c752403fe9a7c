package containerd

import (
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// KillTask ends a task that containerd's CRI has lost, so that the CRI can remove the container.
func KillTask(ctx context.Context, socket, containerID string) error {
	if err := killTask(ctx, socket, containerID); err != nil {
		return fmt.Errorf("releasing container %s: %w", containerID, err)
	}
	return nil
}

func killTask(ctx context.Context, socket, containerID string) error {
	s, err := OpenStore(socket)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // the connection has done its work
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	container, err := s.client.LoadContainer(ctx, containerID)
	if err != nil {
		return err
	}
	task, err := container.Task(ctx, nil)
	if err != nil {
		return err
	}
	_, err = task.Delete(ctx, client.WithProcessKill)
	return err
}
