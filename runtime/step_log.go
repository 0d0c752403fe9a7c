package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
)

// logFull tells that the log of a container that runs is due to be rotated.
func logFull(status *runtimeapi.ContainerStatus) bool {
	path := status.GetLogPath()
	return status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING && path != "" && logfile.Full(path)
}

// rotateLog is the step that rotates the log of one container.
func (x *execution) rotateLog(ctx context.Context, s *plan.Step) error {
	return x.e.rotate(ctx, &runLog{x.plan.Pod, s.Container, s.Attempt, s.ContainerID})
}

// runLog is the log of one run of a container.
type runLog struct {
	pod         model.PodRef
	container   string
	attempt     uint32
	containerID string
}

// rotate moves a log aside, makes the runtime write a new one, and removes the
// oldest of those that were moved aside before.
func (e *Engine) rotate(ctx context.Context, log *runLog) error {
	pod := e.layout.Pod(log.pod.UID)
	path, err := pod.Logs(log.pod.Namespace, log.pod.Name).File(log.container, log.attempt)
	if err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	dir, err := pod.Logs(log.pod.Namespace, log.pod.Name).Open(log.container)
	if err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	return errors.Join(e.rotateIn(ctx, dir, filepath.Base(path), log.containerID), dir.Close())
}

// rotateIn rotates a log in its directory.
func (e *Engine) rotateIn(ctx context.Context, dir *safefs.Dir, name, containerID string) error {
	aside := state.RotatedLog(name, e.now())
	err := dir.Rename(name, dir, aside)
	if errors.Is(err, fs.ErrExist) {
		// It was rotated in this second already, and would take the place of what was
		// moved aside then: the next pass does it.
		return nil
	}
	if err = safefs.IgnoreMissing(err); err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	if err = state.ClearLogIn(dir, name); err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := e.client.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: containerID}); err != nil {
		// As it was, so that the next pass tries again (kubelet: rotateLatestLog).
		err = fmt.Errorf("rotating the log: %w", err)
		return errors.Join(err, safefs.IgnoreMissing(dir.Rename(aside, dir, name)))
	}
	return logfile.DropOld(dir, name)
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
		var err error
		// Most logs are small: the runtime is asked for few. A name that is no part of a path has
		// no log of podctl's.
		if g.Path, err = e.layout.Pod(g.Pod.UID).Logs(g.Pod.Namespace, g.Pod.Name).File(g.Name, g.Attempt); err != nil {
			continue
		}
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
	known, err := e.layout.Pod(g.Pod.UID).Journal().Exists()
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
	return e.rotate(ctx, &runLog{g.Pod, g.Name, g.Attempt, g.ID})
}
