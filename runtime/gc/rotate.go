package gc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
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

// Rotator rotates the logs of running containers.
type Rotator struct {
	client *cri.Client
	layout state.Layout
	now    func() time.Time
	limits logfile.Limits
}

// NewRotator returns a Rotator.
func NewRotator(w observe.World) *Rotator {
	return &Rotator{client: w.Client, layout: w.Layout, now: w.Now, limits: w.Logs}
}

// Rotate renames a full log, lets the runtime open a new one, and removes the oldest rotated logs. It needs no lock of
// the pod. It does nothing while another process rotates the logs of the container.
func (x *Rotator) Rotate(ctx context.Context, log *RunLog) error {
	pod := x.layout.Pod(log.Pod.UID)
	logs := pod.Logs(log.Pod.Namespace, log.Pod.Name)
	path, err := logs.File(log.Container, log.Attempt)
	if err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	dir, err := logs.Open(log.Container)
	if err != nil {
		return fmt.Errorf("rotating the log: %w", err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	lock, err := state.LockLogs(pod, log.Container)
	if lock == nil {
		return safefs.Wrapf(err, "rotating the log: locking it")
	}
	defer lock.Close() //nolint:errcheck // This frees the lock.
	if !x.limits.Full(path) {
		return nil
	}
	return x.rotateIn(ctx, dir, filepath.Base(path), log.ContainerID)
}

// rotateIn rotates a log in its directory. If it was already rotated in this second, it does nothing, because the new
// name would replace that file; the next pass rotates it.
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

// moveAside renames the log and lets the runtime open a new one. If that fails, it restores the log, so that the next
// pass tries again (kubelet: rotateLatestLog).
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
	request := &runtimeapi.ReopenContainerLogRequest{ContainerId: containerID}
	if _, err := x.client.ReopenContainerLog(ctx, request); err != nil {
		err = fmt.Errorf("rotating the log: %w", err)
		return errors.Join(err, safefs.IgnoreMissing(dir.Rename(aside, dir, name)))
	}
	return x.limits.DropOld(dir, name)
}

// fullLogs returns the logs of an applied pod that are due for rotation. If a kubelet is running, it rotates them
// instead.
func (x *Rotator) fullLogs(ctx context.Context, l *leftovers) ([]Garbage, error) {
	var found []Garbage
	if !l.checkpoint || l.shared {
		return nil, nil
	}
	for _, c := range l.containers {
		g := Garbage{
			Kind:    GarbageFullLog,
			Pod:     l.ref(),
			Name:    c.GetMetadata().GetName(),
			ID:      c.GetId(),
			Attempt: c.GetMetadata().GetAttempt(),
			Reason:  "it has reached its size limit",
		}
		var err error
		// Most logs are small, so the runtime is queried for few of them. A container whose name cannot be part of a
		// path has no log of podctl.
		if g.Path, err = x.layout.Pod(g.Pod.UID).Logs(g.Pod.Namespace, g.Pod.Name).File(g.Name, g.Attempt); err != nil {
			continue
		}
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || !x.limits.Full(g.Path) {
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

// isFullLog reports whether a running container writes this log and the log is full.
func (x *Rotator) isFullLog(ctx context.Context, g *Garbage) (bool, error) {
	reply, err := x.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: g.ID})
	status := reply.GetStatus()
	return status.GetLogPath() == g.Path && observe.LogFull(status, x.limits), cri.IgnoreNotFound(err)
}

// rotateFull rotates a log if it is still full.
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
