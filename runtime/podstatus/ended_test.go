package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestUnknownEnds checks which containers of a pod that has ended without records count as failed: the first init
// container, and regular containers only if the pod has no init containers or those have succeeded (kubelet:
// TestTerminatePod). A deadline that passes after the end changes nothing.
func TestUnknownEnds(t *testing.T) {
	const unknown = "ContainerStatusUnknown"
	inits := "  initContainers: [{name: one, image: i:1}, {name: two, image: i:1}]\n"
	app := "  activeDeadlineSeconds: 60\n  containers: [{name: app, image: i:1}]\n"
	for name, c := range map[string]struct {
		spec  string
		ends  map[string]model.ContainerEnd
		wants []string
	}{
		"no init containers":           {app, nil, []string{unknown}},
		"no init container has run":    {inits + app, nil, []string{unknown, "waiting PodInitializing", "waiting PodInitializing"}},
		"the last one has succeeded":   {inits + app, done("one", "two"), []string{"Completed", "Completed", unknown}},
		"the last one has not started": {inits + app, done("one"), []string{"Completed", "waiting PodInitializing", "waiting PodInitializing"}},
	} {
		w := web(t, c.spec)
		w.Memory.StartTime = modeltest.Noon().Add(-time.Hour)
		w.Memory.End = &model.End{Deletion: model.Deletion{At: w.Memory.StartTime.Add(time.Second)}}
		w.Memory.Completion = &model.Completion{Phase: v1.PodFailed, Containers: c.ends}
		s := Of(podOf(w))
		var got []string
		for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
			for i := range list {
				got = append(got, stateWord(&list[i]))
			}
		}
		if s.Phase != v1.PodFailed || s.Reason != "" || len(got) != len(c.wants) {
			t.Fatalf("%s: %s %s %v", name, s.Phase, s.Reason, got)
		}
		for i := range got {
			if got[i] != c.wants[i] {
				t.Errorf("%s: %v, want %v", name, got, c.wants)
			}
		}
	}
}

// TestPhaseOfEvictedPod checks that an evicted, preempted or shut down pod has failed, and that a pod of the API server
// has succeeded instead if all its containers ended with 0 (kubelet: SyncTerminatingPod, getPhase, TerminatePod). The
// reason goes with the phase Failed, and the condition stays.
func TestPhaseOfEvictedPod(t *testing.T) {
	const two = "  containers: [{name: app, image: i:1}, {name: b, image: i:1}]\n"
	for name, c := range map[string]struct {
		owner string
		app   model.ContainerState
		codes []int32
		want  string
	}{
		"all ended with 0":             {podspec.OwnerAPI, model.Exited, []int32{0, 0}, "Succeeded  Completed Completed"},
		"one failed":                   {podspec.OwnerAPI, model.Exited, []int32{0, 1}, "Failed Preempting Completed Error"},
		"one has no record":            {podspec.OwnerAPI, model.Exited, []int32{0}, "Failed Preempting Completed ContainerStatusUnknown"},
		"one runs":                     {podspec.OwnerAPI, model.Running, []int32{0, 0}, "Failed Preempting running Completed"},
		"a pod of a file has a reason": {"", model.Exited, []int32{0, 0}, "Failed Preempting Completed Completed"},
	} {
		w := web(t, two).Sandbox("s0", 0, model.SandboxReady)
		w.Desired.Owner = c.owner
		w.Memory.Eviction = &model.Eviction{Preempted: true, Message: "m"}
		for i, code := range c.codes {
			one := w.Container("s0", []string{"app", "b"}[i], 0, model.Exited)
			if one.ExitCode, one.Reason = code, "Completed"; code != 0 {
				one.Reason = "Error"
			}
			if i == 0 {
				one.State = c.app
			}
		}
		check := func(when string) {
			s := Of(podOf(w))
			got := string(s.Phase) + " " + s.Reason
			for i := range s.ContainerStatuses {
				got += " " + stateWord(&s.ContainerStatuses[i])
			}
			if got != c.want || conditionIn(s.Conditions, v1.DisruptionTarget) < 0 {
				t.Errorf("%s, %s: %s, want %s", name, when, got, c.want)
			}
		}
		check("stopped")
		if c.app == model.Exited {
			s := Of(podOf(w))
			w.Memory.Completion = &model.Completion{Phase: s.Phase, Containers: Ends(&s)}
			w.Sandboxes, w.Containers = nil, nil
			check("removed")
		}
	}
}

// done returns the ends of containers that have succeeded.
func done(names ...string) map[string]model.ContainerEnd {
	ends := map[string]model.ContainerEnd{}
	for _, name := range names {
		ends[name] = model.ContainerEnd{ID: "c://" + name, Reason: "Completed"}
	}
	return ends
}
