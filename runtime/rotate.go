package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// The kubelet's limits for the log of one container (containerLogMaxSize,
// containerLogMaxFiles): its size in bytes, and how many files there are, the one
// that is written included.
const (
	logSizeMax  = 10 << 20
	logFilesMax = 5
)

// logFull tells that a running container's log is due to be rotated.
func logFull(status *runtimeapi.ContainerStatus) bool {
	if status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || status.GetLogPath() == "" {
		return false
	}
	info, err := os.Stat(status.GetLogPath())
	if errors.Is(err, fs.ErrNotExist) {
		// Moved aside and never opened again: the runtime was not told.
		return true
	}
	return err == nil && info.Mode().IsRegular() && info.Size() >= logSizeMax
}

// rotateLog moves a log aside, makes the runtime write a new one, and removes the
// oldest of those that were moved aside before.
func (x *execution) rotateLog(ctx context.Context, s *plan.Step) error {
	pod := x.plan.Pod
	path := x.e.layout.Pod(pod.UID).LogFile(pod.Namespace, pod.Name, s.Container, s.Attempt)
	aside := state.RotatedLog(path, x.e.now())
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rotating the log: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := x.e.client.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: s.ContainerID}); err != nil {
		// As it was, so that the next pass tries again (kubelet: rotateLatestLog).
		return errors.Join(fmt.Errorf("rotating the log: %w", err), ignoreMissing(os.Rename(aside, path)))
	}
	return dropOldLogs(path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func dropOldLogs(path string) error {
	rotated, err := rotatedLogs(path)
	if err != nil {
		return err
	}
	for _, old := range rotated[:max(len(rotated)-(logFilesMax-1), 0)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("removing an old log: %w", err)
		}
	}
	return nil
}
