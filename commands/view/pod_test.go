package view

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodView(t *testing.T) {
	started := metav1.NewTime(time.Date(2026, 5, 4, 11, 58, 0, 0, time.UTC))
	pod := func(status v1.PodStatus) *v1.Pod {
		status.StartTime = &started
		p := &v1.Pod{Status: status}
		p.Name = "web"
		p.Spec.Containers = []v1.Container{{Name: "a"}, {Name: "b"}}
		return p
	}
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	done := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed"}}
	broken := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Error", ExitCode: 3}}
	cases := map[string]struct {
		status v1.PodStatus
		want   string
	}{
		"running": {v1.PodStatus{
			Phase:             v1.PodRunning,
			ContainerStatuses: []v1.ContainerStatus{{State: running, Ready: true}, {State: running, Ready: true}},
		}, "web 2/2 Running 0 2m"},
		"crashing": {v1.PodStatus{
			Phase:             v1.PodRunning,
			ContainerStatuses: []v1.ContainerStatus{{State: waiting, RestartCount: 4}, {State: running, Ready: true}},
		}, "web 1/2 CrashLoopBackOff 4 2m"},
		"one of them failed": {
			v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{{State: done}, {State: broken}}},
			"web 0/2 Error 0 2m",
		},
		"none of them failed": {
			v1.PodStatus{Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{{State: done}, {State: waiting}}},
			"web 0/2 Failed 0 2m",
		},
		"its deadline was exceeded": {v1.PodStatus{
			Phase: v1.PodFailed, Reason: "DeadlineExceeded",
			ContainerStatuses: []v1.ContainerStatus{{State: done}, {State: waiting}},
		}, "web 0/2 DeadlineExceeded 0 2m"},
		"one failed, another runs": {v1.PodStatus{
			Phase:             v1.PodRunning,
			ContainerStatuses: []v1.ContainerStatus{{State: broken}, {State: running, Ready: true}},
		}, "web 1/2 Error 0 2m"},
		"completed": {
			v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{{State: done}, {State: done}}},
			"web 0/2 Completed 0 2m",
		},
	}
	v := &Lists{Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	check := func(name string, p *v1.Pod, want string) {
		t.Helper()
		if got := strings.Join(rowsOf(v.Pods([]*v1.Pod{p}))[0].Cells, " "); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, c := range cases {
		check(name, pod(c.status), c.want)
	}
	over := pod(v1.PodStatus{
		Phase:                 v1.PodFailed,
		Reason:                "DeadlineExceeded",
		InitContainerStatuses: []v1.ContainerStatus{{State: done}, {State: waiting}},
		ContainerStatuses:     []v1.ContainerStatus{{State: waiting}, {State: waiting}},
	})
	over.Spec.InitContainers = []v1.Container{{Name: "first"}, {Name: "second"}}
	check("its deadline was exceeded before it was initialized", over, "web 0/2 DeadlineExceeded 0 2m")
	over.Status.InitContainerStatuses[1].State = broken
	check("an init container failed", over, "web 0/2 Init:Error 0 2m")
	going := pod(cases["running"].status)
	going.DeletionTimestamp = &started
	check("being deleted", going, "web 2/2 Terminating 0 2m")
}

func rowsOf(_ []string, rows []Row) []Row { return rows }

// TestRowState: the state of a row differs after a change, and not because time passes.
func TestRowState(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	pod := &v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning, StartTime: &metav1.Time{Time: at}}}
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		RestartCount: 1,
		LastTerminationState: v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)},
		},
	}}
	row := func(after time.Duration) Row { return rowsOf((&Lists{Now: at.Add(after)}).Pods([]*v1.Pod{pod}))[0] }
	first, later := row(time.Minute), row(time.Hour)
	if first.State != later.State || first.Cells[3] == later.Cells[3] || first.Cells[4] == later.Cells[4] {
		t.Errorf("%q, %q", first, later)
	}
	pod.Status.ContainerStatuses[0].RestartCount++
	if row(time.Minute).State == first.State {
		t.Error("a restart does not change the state")
	}
}
