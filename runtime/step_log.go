package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// logFull tells that the log of a container that runs is due to be rotated.
func logFull(status *runtimeapi.ContainerStatus) bool {
	path := status.GetLogPath()
	return status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING && path != "" && logfile.Full(path)
}

// rotateLog is the step that rotates the log of one container.
func (x *execution) rotateLog(ctx context.Context, s *plan.Step) error {
	pod := x.plan.Pod
	return x.e.rotate(ctx, x.e.layout.Pod(pod.UID).LogFile(pod.Namespace, pod.Name, s.Container, s.Attempt), s.ContainerID)
}

// rotate moves a log aside, makes the runtime write a new one, and removes the
// oldest of those that were moved aside before.
func (e *Engine) rotate(ctx context.Context, path, containerID string) error {
	aside := state.RotatedLog(path, e.now())
	if _, err := os.Lstat(aside); err == nil {
		// It was rotated in this second already, and would take the place of what was
		// moved aside then: the next pass does it.
		return nil
	}
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rotating the log: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := e.client.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: containerID}); err != nil {
		// As it was, so that the next pass tries again (kubelet: rotateLatestLog).
		err = fmt.Errorf("rotating the log: %w", err)
		if back := os.Rename(aside, path); !errors.Is(back, fs.ErrNotExist) {
			err = errors.Join(err, back)
		}
		return err
	}
	return logfile.DropOld(path)
}

// fullLogs are the logs of a pod that podctl applied which are due to be rotated. Where a
// kubelet lives, it rotates them.
func (e *Engine) fullLogs(ctx context.Context, l *litter) ([]Garbage, error) {
	var found []Garbage
	if !l.journal || l.shared {
		return nil, nil
	}
	for _, c := range l.containers {
		g := Garbage{
			Kind: GarbageFullLog, Pod: l.ref(), Name: c.GetMetadata().GetName(), ID: c.GetId(), Attempt: c.GetMetadata().GetAttempt(),
			Reason: "it has grown to where it is rotated",
		}
		g.Path = e.layout.Pod(g.Pod.UID).LogFile(g.Pod.Namespace, g.Pod.Name, g.Name, g.Attempt)
		// Most logs are small: the runtime is asked for few.
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || !isPodctls(c.GetAnnotations()) || !logfile.Full(g.Path) {
			continue
		}
		full, err := e.isFullLog(ctx, &g)
		if err != nil {
			return nil, fmt.Errorf("looking at the log of container %s: %w", g.Name, err)
		}
		if full {
			found = append(found, g)
		}
	}
	return found, nil
}

// isFullLog tells that a container runs and that the log it writes is full.
func (e *Engine) isFullLog(ctx context.Context, g *Garbage) (bool, error) {
	reply, err := e.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: g.ID})
	status := reply.GetStatus()
	return status.GetLogPath() == g.Path && logFull(status), ignoreNotFound(err)
}

// rotateFull rotates a log that was full, if it still is. The caller holds the pod's lock.
func (e *Engine) rotateFull(ctx context.Context, g *Garbage) error {
	known, err := e.layout.Pod(g.Pod.UID).HasJournal()
	if err != nil {
		return err
	}
	full, err := e.isFullLog(ctx, g)
	if err != nil {
		return err
	}
	if !known || !full {
		return ErrNeeded
	}
	return e.rotate(ctx, g.Path, g.ID)
}
