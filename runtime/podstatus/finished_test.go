package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestFinishedWithoutRecords checks that a finished pod shows how its containers ended, also if the runtime has no
// record of them.
func TestFinishedWithoutRecords(t *testing.T) {
	at := modeltest.Noon().Add(-time.Hour)
	ended := map[string]model.ContainerEnd{
		"seed": {ID: "c://1", Reason: "Completed", FinishedAt: at},
		"app":  {ID: "c://2", Reason: "OOMKilled", ExitCode: 137, FinishedAt: at, Restarts: 2},
	}
	for name, c := range map[string]struct {
		policy   v1.RestartPolicy
		phase    v1.PodPhase
		ends     map[string]model.ContainerEnd
		app, log string
		code     int32
		restarts int32
	}{
		"the pod has succeeded": {
			v1.RestartPolicyNever,
			v1.PodSucceeded,
			map[string]model.ContainerEnd{"app": {Reason: "Completed", ID: "c://2"}},
			"Completed",
			"Completed",
			0,
			0,
		},
		"the pod has failed": {v1.RestartPolicyNever, v1.PodFailed, ended, "OOMKilled", "waiting ContainerCreating", 137, 2},
		"under Always":       {v1.RestartPolicyAlways, v1.PodPending, ended, "waiting ContainerCreating", "waiting ContainerCreating", 0, 0},
	} {
		w := web(t, "  restartPolicy: "+string(c.policy)+"\n  containers: [{name: app, image: i:1}, {name: log, image: i:1}]\n")
		w.Memory.Completion = &model.Completion{Phase: c.phase, At: at, Containers: c.ends}
		status := Of(podOf(w))
		app, log := status.ContainerStatuses[0], status.ContainerStatuses[1]
		if status.Phase != c.phase || stateWord(&app) != c.app || stateWord(&log) != c.log || app.RestartCount != c.restarts {
			t.Errorf("%s: %s, %s after %d restarts, %s", name, status.Phase, stateWord(&app), app.RestartCount, stateWord(&log))
		}
		if end := app.State.Terminated; end != nil && end.ExitCode != c.code {
			t.Errorf("%s: exit code %d", name, end.ExitCode)
		}
	}
}

// TestRecordsPrecedeTheCheckpoint checks that an existing record counts first.
func TestRecordsPrecedeTheCheckpoint(t *testing.T) {
	w := policy(t, v1.RestartPolicyNever).Sandbox("s0", 0, model.SandboxNotReady).States("app=Exited:4")
	w.Memory.Completion = &model.Completion{
		Phase:      v1.PodFailed,
		At:         modeltest.Noon(),
		Containers: map[string]model.ContainerEnd{"app": {ExitCode: 9}},
	}
	status := Of(podOf(w))
	if end := status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 4 {
		t.Errorf("%+v", status.ContainerStatuses[0].State)
	}
	if ends := Ends(&status); len(ends) != 1 || ends["app"].ExitCode != 4 || ends["app"].ID == "" {
		t.Errorf("the stored completion: %+v", ends)
	}
}

func stateWord(s *v1.ContainerStatus) string {
	switch {
	case s.State.Terminated != nil:
		return s.State.Terminated.Reason
	case s.State.Waiting != nil:
		return "waiting " + s.State.Waiting.Reason
	}
	return "running"
}
