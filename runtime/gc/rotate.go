package gc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/podlogs"
)

// RunLog is the log of one run of a container.
type RunLog struct {
	Pod         model.PodRef
	Container   string
	Attempt     uint32
	ContainerID string
}

// Rotator rotates the logs of containers that run.
type Rotator struct {
	client *cri.Client
	layout state.Layout
	now    func() time.Time
	limits logfile.Limits
}

// NewRotator makes a Rotator.
func NewRotator(w observe.World) *Rotator {
	return &Rotator{client: w.Client, layout: w.Layout, now: w.Now, limits: w.Logs}
}

// Rotate moves a log aside, makes the runtime write a new one, and removes the
// oldest of those that were moved aside before.
func (x *Rotator) Rotate(ctx context.Context, log *RunLog) error {
	logs := x.layout.Pod(log.Pod.UID).Logs(log.Pod.Namespace, log.Pod.Name)
	path, err := logs.File(log.Container, log.Attempt)
	if err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	dir, err := logs.Open(log.Container)
	if err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	return errors.Join(x.rotateIn(ctx, dir, filepath.Base(path), log.ContainerID), dir.Close())
}

// rotateIn rotates a log in its directory, unless it was rotated in this second already: it would take the place of what was
// moved aside then. The next pass does it.
func (x *Rotator) rotateIn(ctx context.Context, dir *safefs.Dir, name, containerID string) error {
	aside := podlogs.RotatedLog(name, x.now())
	for _, taken := range []string{aside, aside + logfile.Compressed} {
		if _, err := dir.Lstat(taken); err == nil {
			return nil
		}
	}
	compressed := logfile.Compress(dir, name)
	return errors.Join(compressed, x.moveAside(ctx, dir, name, aside, containerID))
}

// moveAside moves the log to another name, and lets the runtime begin a new one. If that fails, the log is as it was, so that the
// next pass tries again (kubelet: rotateLatestLog).
func (x *Rotator) moveAside(ctx context.Context, dir *safefs.Dir, name, aside, containerID string) error {
	err := dir.Rename(name, dir, aside)
	if err = safefs.IgnoreMissing(err); err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	if err = podlogs.ClearLogIn(dir, name); err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := x.client.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: containerID}); err != nil {
		err = fmt.Errorf("rotating the log: %w", err)
		return errors.Join(err, safefs.IgnoreMissing(dir.Rename(aside, dir, name)))
	}
	return x.limits.DropOld(dir, name)
}

// fullLogs are the logs of a pod that podctl applied which are due to be rotated. Where a
// kubelet lives, it rotates them.
func (x *Rotator) fullLogs(ctx context.Context, l *leftovers) ([]Garbage, error) {
	var found []Garbage
	if !l.checkpoint || l.shared {
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
		if g.Path, err = x.layout.Pod(g.Pod.UID).Logs(g.Pod.Namespace, g.Pod.Name).File(g.Name, g.Attempt); err != nil {
			continue
		}
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || !criconfig.MadeByPodctl(c.GetAnnotations()) || !x.limits.Full(g.Path) {
			continue
		}
		full, err := x.isFullLog(ctx, &g)
		if err != nil {
			return nil, fmt.Errorf("looking at the log of container %s: %w", g.Name, err)
		}
		if full {
			found = append(found, g)
		}
	}
	return found, nil
}

// isFullLog reports whether a container runs and that the log it writes is full.
func (x *Rotator) isFullLog(ctx context.Context, g *Garbage) (bool, error) {
	reply, err := x.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: g.ID})
	status := reply.GetStatus()
	return status.GetLogPath() == g.Path && observe.LogFull(status, x.limits), cri.IgnoreNotFound(err)
}

// rotateFull rotates a log that was full, if it still is. The caller holds the pod's lock.
func (x *Rotator) rotateFull(ctx context.Context, g *Garbage) error {
	known, err := x.layout.Pod(g.Pod.UID).Checkpoint().Exists()
	if err != nil {
		return err
	}
	full, err := x.isFullLog(ctx, g)
	if err != nil {
		return err
	}
	if !known || !full {
		return ErrNeeded
	}
	return x.Rotate(ctx, &RunLog{Pod: g.Pod, Container: g.Name, Attempt: g.Attempt, ContainerID: g.ID})
}
