package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// NotePullPause keeps until when images that could not be pulled are not tried again, which their
// containers' status shows (kubelet: ImagePullBackOff). The caller holds the pod's lock.
func (e *Executor) NotePullPause(ref model.PodRef, failed []StepError, until time.Time) error {
	pod := e.layout.Pod(ref.UID)
	j, err := pod.Checkpoint().Read()
	if err != nil || j.Deletion != nil {
		return err
	}
	var told events.Recorder
	for i := range failed {
		f := &failed[i]
		kept, known := j.StartErrors[f.Step.Container]
		if !known || f.Step.Kind != plan.PullImage || !errors.As(f.Err, new(*images.Error)) {
			continue
		}
		kept.Until = until
		j.StartErrors[f.Step.Container] = kept
		told.Normal(e.now(), "BackOff", f.Step.Container, fmt.Sprintf("Back-off pulling image %q", f.Step.Image))
		told.Warning(e.now(), "Failed", f.Step.Container, "Error: "+string(model.ImagePullBackOff))
	}
	return errors.Join(pod.Checkpoint().Write(j), told.Write(pod, ref, j.Redactor(nil)))
}
