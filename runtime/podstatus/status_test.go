package podstatus

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

func podOf(w *modeltest.World) *Pod {
	return New(&Input{Desired: w.Desired, Observed: w.Observed, Now: modeltest.Noon()})
}

func statusOf(w *modeltest.World) v1.PodStatus { return Of(podOf(w)) }

// TestSidecarThatExitedZeroIsNotWaiting: it starts again, and yet counts as terminated.
func TestSidecarThatExitedZeroIsNotWaiting(t *testing.T) {
	d := modeltest.Load(t, strings.Replace(modeltest.WebPod, "{name: seed, image: i:1}", "{name: seed, image: i:1, restartPolicy: Always}", 1))
	for code, waits := range map[int32]bool{0: false, 1: true} {
		w := modeltest.Running(d)
		w.Containers[0].FinishedAt, w.Containers[0].ExitCode = modeltest.Noon().Add(-5*time.Second), code
		w.Memory.Backoffs["seed"] = model.Backoff{Duration: 10 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
		status := statusOf(w)
		if state := status.InitContainerStatuses[0].State; (state.Waiting != nil) != waits {
			t.Errorf("exited %d: %+v", code, state)
		}
	}
}
