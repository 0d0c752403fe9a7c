package agent

import (
	"bytes"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
)

// TestStatusBeginsWithProblems: problems of every kind come first, then the readiness of the agent. In the tables, the
// pods and workloads with problems come first.
func TestStatusBeginsWithProblems(t *testing.T) {
	pod := func(name string) api.Pod {
		return api.Pod{PodRef: model.PodRef{Namespace: "default", Name: name, UID: types.UID(name)}}
	}
	fine, failed, held, rejected := pod("fine"), pod("failed"), pod("held"), pod("rejected")
	failed.Error = "no image"
	held.Waiting = []string{"a held"}
	rejected.Rejection = &model.Rejection{Message: "too big"}
	s := &api.Status{
		Ready:    true,
		Runtime:  api.Runtime{Endpoint: "unix:///x", Error: "refused"},
		Pressure: []string{"MemoryPressure"},
		Sources: []api.Source{{
			Name: "/pods", Complete: true, Pods: 2, Problems: []api.Problem{{File: "a.yaml", Text: "bad\nyaml"}},
		}},
		Problems: []api.Problem{{File: "b.yaml", Text: "given twice"}},
		Pods:     []api.Pod{fine, held, failed, rejected},
		Workloads: []api.Workload{
			{Namespace: "default", Kind: "Deployment", Name: "good"},
			{Namespace: "default", Kind: "Job", Name: "bad", Error: "stuck"},
		},
	}
	var out, notes bytes.Buffer
	now := func() time.Time { return time.Unix(0, 0) }
	io := terminal.NewIO(&terminal.Env{
		In: strings.NewReader(""), Out: &out, Err: &notes, Now: now, Getenv: func(string) string { return "" },
	})
	states := map[types.UID]*v1.Pod{"fine": {
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
			{Name: "a", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		}},
	}}
	if err := show(io, s, states); err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{
		"problem: unix:///x does not answer: refused\n", "problem: the node has MemoryPressure",
		"problem: a.yaml: bad yaml\n", "problem: b.yaml: given twice\n",
		"problem: pod default/failed: last pass failed: no image\n",
		"problem: pod default/rejected: not admitted: too big\n", "problem: job default/bad: stuck\n",
		"agent is running: ready, ", "source /pods: 2 pods\n", "READY", "default     failed",
		"default     rejected", "default     held", "default     fine       1/1     Running",
		"job/bad", "deployment/good",
	} {
		next := strings.Index(out.String(), want)
		if next <= at {
			t.Errorf("%q is at %d, after %d, in\n%s", want, next, at, out.String())
		}
		at = next
	}
}
