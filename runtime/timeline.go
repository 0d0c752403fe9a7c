package runtime

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// Timeline says where the time of a pod's start went, from its sandbox on.
type Timeline struct {
	Pod        plan.PodRef
	Begin, End time.Time
	Rows       []TimelineRow
}

// TimelineRow is one thing that took time; a moment has no length.
type TimelineRow struct {
	// Kind is pull, sandbox, volume, cgroup, start, run (of an init container), started
	// or ready.
	Kind       string
	Object     string
	Begin, End time.Time
	Failed     bool
}

// NewTimeline puts together what podctl noted of a start and what the runtime knows
// of the containers' runs.
func NewTimeline(pod *v1.Pod, h *state.History) *Timeline {
	t := &Timeline{Pod: plan.RefOf(pod)}
	for _, s := range h.Spans {
		t.Rows = append(t.Rows, TimelineRow{rowKind(s.Kind), s.Object, s.Begin, s.End, s.Failed})
	}
	t.addRuns(pod)
	t.addReady(pod)
	slices.SortStableFunc(t.Rows, func(a, b TimelineRow) int { return a.Begin.Compare(b.Begin) })
	for _, r := range t.Rows {
		if t.Begin.IsZero() || r.Begin.Before(t.Begin) {
			t.Begin = r.Begin
		}
		if r.End.After(t.End) {
			t.End = r.End
		}
	}
	return t
}

func rowKind(kind string) string {
	return map[string]string{
		string(plan.RunSandbox): "sandbox", string(plan.PullImage): "pull", string(plan.PrepareVolume): "volume",
		string(plan.CreateCgroup): "cgroup", string(plan.StartContainer): "start", "Ready": "ready", "Started": "started",
	}[kind]
}

// addRuns adds the runs of the init containers that came to an end: what comes after
// them waits that long.
func (t *Timeline) addRuns(pod *v1.Pod) {
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		row, ended := t.lastStart(s.Name), s.State.Terminated
		if row == nil || ended == nil || !ended.FinishedAt.After(row.End) {
			continue
		}
		t.Rows = append(t.Rows, TimelineRow{
			Kind: "run", Object: s.Name, Begin: row.End, End: ended.FinishedAt.Time, Failed: ended.ExitCode != 0,
		})
	}
}

// lastStart is the last start of a container.
func (t *Timeline) lastStart(name string) *TimelineRow {
	for i := range slices.Backward(t.Rows) {
		if t.Rows[i].Kind == "start" && t.Rows[i].Object == name {
			return &t.Rows[i]
		}
	}
	return nil
}

// addReady adds the moment at which a container without a readiness probe counts as
// ready: its start.
func (t *Timeline) addReady(pod *v1.Pod) {
	for _, ref := range podspec.RegularContainers(pod) {
		if row := t.lastStart(ref.Name); row != nil && !row.Failed && ref.ReadinessProbe == nil && ref.StartupProbe == nil {
			t.Rows = append(t.Rows, TimelineRow{Kind: "ready", Object: ref.Name, Begin: row.End, End: row.End})
		}
	}
}
