package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
)

const probedPod = "  hostNetwork: true\n" +
	"  containers: [{name: a, image: 'i:1', readinessProbe: {tcpSocket: {port: 1}}, " +
	"livenessProbe: {tcpSocket: {port: 1}}}]\n"

// TestVerdictsOfTheAgent: probe shows the agent's verdict and its age beside its own result. Without an agent there is
// no such column.
func TestVerdictsOfTheAgent(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", probedPod))
	if _, stdout, _ := l.Call("probe", "--no-record", "web"); strings.Contains(stdout, "AGENT") {
		t.Errorf("without an agent:\n%s", stdout)
	}
	var pod v1.Pod
	text, _ := l.Must("get", "web", "-o", "json")
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	since := l.Clock.Now().Add(-3 * time.Minute)
	l.ServeAgent(api.Pod{PodRef: model.RefOf(&pod), Probes: []api.Probe{
		{
			Container: "a", ContainerID: id, Type: model.Readiness, Result: model.ProbeSuccess, Since: since,
			LastProbeTime: since, Message: "it did",
		},
		{Container: "a", ContainerID: id, Type: model.Liveness, Result: model.ProbeSuccess, Since: since},
		{
			Container: "a", ContainerID: "before", Type: model.Startup, Result: model.ProbeFailure, Since: since,
			LastProbeTime: since,
		},
	}})
	_, stdout, _ := l.Call("probe", "--no-record", "web")
	if !strings.Contains(stdout, "Success for 3m") || !strings.Contains(stdout, "has not run yet") ||
		strings.Contains(stdout, "Failure for") {
		t.Errorf("the agent's results are missing:\n%s", stdout)
	}
	var list struct {
		Items []struct {
			Type  model.ProbeType
			Agent *api.Probe
		}
	}
	_, stdout, _ = l.Call("probe", "--no-record", "-o", "json", "web")
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		asked := item.Type == model.Readiness
		if a := item.Agent; a == nil || a.Result != model.ProbeSuccess || !a.Since.Equal(since) ||
			a.LastProbeTime.IsZero() == asked || (a.Message != "") != asked {
			t.Errorf("%s: the agent knows %+v", item.Type, a)
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("%d probes:\n%s", len(list.Items), stdout)
	}
}
