package commands

import (
	"encoding/json"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/podspectest"
)

// goldenStatus is a short form of the status that a kubelet computed.
type goldenStatus struct {
	Phase          v1.PodPhase                `json:"phase"`
	PodIPs         []string                   `json:"podIPs"`
	Conditions     map[string]goldenCondition `json:"conditions"`
	InitContainers map[string]goldenContState `json:"initContainers"`
	Containers     map[string]goldenContState `json:"containers"`
}

type goldenCondition struct {
	Status  v1.ConditionStatus `json:"status"`
	Reason  string             `json:"reason"`
	Message string             `json:"message"`
}

type goldenContState struct {
	State        string `json:"state"`
	Ready        bool   `json:"ready"`
	Started      bool   `json:"started"`
	RestartCount int32  `json:"restartCount"`
	Reason       string `json:"reason"`
	ExitCode     *int32 `json:"exitCode"`
	LastExitCode *int32 `json:"lastExitCode"`
}

func goldenStatusOf(pod *v1.Pod) *goldenStatus {
	s := &goldenStatus{Phase: pod.Status.Phase, Conditions: map[string]goldenCondition{}}
	for _, ip := range pod.Status.PodIPs {
		s.PodIPs = append(s.PodIPs, ip.IP)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != v1.PodScheduled {
			s.Conditions[string(c.Type)] = goldenCondition{c.Status, c.Reason, c.Message}
		}
	}
	s.InitContainers = containerStates(pod.Status.InitContainerStatuses)
	s.Containers = containerStates(pod.Status.ContainerStatuses)
	return s
}

func containerStates(statuses []v1.ContainerStatus) map[string]goldenContState {
	states := map[string]goldenContState{}
	for i := range statuses {
		s := &statuses[i]
		out := goldenContState{Ready: s.Ready, Started: s.Started != nil && *s.Started, RestartCount: s.RestartCount}
		switch {
		case s.State.Running != nil:
			out.State = "running"
		case s.State.Terminated != nil:
			out.State, out.Reason, out.ExitCode = "terminated", s.State.Terminated.Reason, &s.State.Terminated.ExitCode
		case s.State.Waiting != nil:
			out.State, out.Reason = "waiting", s.State.Waiting.Reason
		}
		if last := s.LastTerminationState.Terminated; last != nil {
			out.LastExitCode = &last.ExitCode
		}
		states[s.Name] = out
	}
	return states
}

// TestStatusAgreesWithTheKubelet compares `get -o json` with the kubelet in each recorded situation.
func TestStatusAgreesWithTheKubelet(t *testing.T) {
	rows := 0
	g := &goldenCall{dir: t.TempDir()}
	podspectest.EachRow(t, "testdata/restartpolicy.train.jsonl.gz", func(line []byte) {
		r := goldenRow{Backoffs: []object{}}
		want := &goldenStatus{}
		if json.Unmarshal(line, &r) != nil || json.Unmarshal(r.Expect, want) != nil {
			t.Fatal("unreadable row")
		}
		if r.Group == "deleting" {
			return
		}
		code, out, errs := g.run(t, &r, "get")
		var list struct{ Items []v1.Pod }
		if err := json.Unmarshal(out, &list); err != nil || code != 0 {
			t.Fatalf("%s: exit code %d: %s", r.ID, code, errs)
		}
		rows++
		if diff := gocmp.Diff(want, goldenStatusOf(&list.Items[0]), equateEmpty); diff != "" {
			t.Errorf("%s (%s): -kubelet +podctl\n%s", r.ID, r.Group, diff)
		}
	})
	if rows < 200 {
		t.Errorf("only %d rows were compared", rows)
	}
}
