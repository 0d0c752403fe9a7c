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

// NotePullPause records until when failed pulls are not retried, which the status of the containers shows (kubelet:
// ImagePullBackOff). The caller holds the pod's lock.
func (e *Executor) NotePullPause(ref model.PodRef, failed []StepError, until time.Time) error {
	pod := e.layout.Pod(ref.UID)
	c, err := pod.Checkpoint().Read()
	if err != nil || c.Deletion != nil {
		return err
	}
	recorder := events.Recorder{Pod: c.Applied, Listen: e.Recorded}
	for i := range failed {
		f := &failed[i]
		kept, known := c.StartErrors[f.Step.Container]
		if !known || f.Step.Kind != plan.PullImage || !errors.As(f.Err, new(*images.Error)) {
			continue
		}
		kept.Until = until
		c.StartErrors[f.Step.Container] = kept
		recordPullPause(&recorder, e.now(), f.Step.Container, f.Step.Image)
	}
	return errors.Join(pod.Checkpoint().Write(c), recorder.Write(pod, ref, c.Redactor(nil)))
}

// recordPullPause records the kubelet's events for a delayed pull.
func recordPullPause(rec *events.Recorder, at time.Time, container, image string) {
	rec.Normal(at, "BackOff", container, fmt.Sprintf("Back-off pulling image %q", image))
	rec.Warning(at, "Failed", container, "Error: "+string(model.ImagePullBackOff))
}
