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
		err = fmt.Errorf("rotating the log: %w", err)
		if back := os.Rename(aside, path); !errors.Is(back, fs.ErrNotExist) {
			err = errors.Join(err, back)
		}
		return err
	}
	return logfile.DropOld(path)
}
