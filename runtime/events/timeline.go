package events

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// Timeline shows how the time of a pod's start was spent, beginning with its sandbox.
type Timeline struct {
	Pod        model.PodRef
	Begin, End time.Time
	Rows       []TimelineRow
}

// TimelineRow is one part of the start; an event has no length.
type TimelineRow struct {
	// Kind is pull, sandbox, volume, cgroup, start, run (of an init container), started or ready.
	Kind string
	// Object is a container, an image or a volume; empty if the kind is enough.
	Object     string
	Begin, End time.Time
	Failed     bool
}

// NewTimeline combines podctl's history of a start with the container runs that the runtime reports.
func NewTimeline(pod *v1.Pod, h *state.History) *Timeline {
	t := &Timeline{Pod: model.RefOf(pod)}
	for _, s := range ofStart(pod, h.Spans) {
		kind := rowKind(s.Kind)
		t.Rows = append(t.Rows, TimelineRow{kind, rowObject(kind, s.Object), s.Begin, s.End, s.Failed})
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

// start separates the spans of a pod's start from later ones.
type start struct {
	// missing are the regular containers that have not started yet. over is when the last of them started.
	missing map[string]bool
	over    time.Time
	// inits are the init containers. The pod waited for their repeated runs.
	inits map[string]bool
	// began counts the successful starts of containers.
	began map[string]int
	// passed has the probes that passed.
	passed map[string]bool
}

// ofStart removes spans after the start: restarts, replacements, debug containers. The spans are ordered by their end.
func ofStart(pod *v1.Pod, spans []state.Span) []state.Span {
	st := start{
		missing: map[string]bool{},
		inits:   map[string]bool{},
		began:   map[string]int{},
		passed:  map[string]bool{},
	}
	for _, ref := range podspec.RegularContainers(pod) {
		st.missing[ref.Name] = true
	}
	for _, ref := range podspec.InitContainers(pod) {
		st.inits[ref.Name] = ref.Type == podspec.Init
	}
	return slices.DeleteFunc(slices.Clone(spans), func(s state.Span) bool { return !st.has(s) })
}

// has reports whether the next span belongs to the start.
func (st *start) has(s state.Span) bool {
	if s.Kind == "Ready" || s.Kind == "Started" {
		// A probe passes after the start, and only the first time counts.
		first := !st.passed[s.Kind+" "+s.Object] && st.began[s.Object] <= 1
		st.passed[s.Kind+" "+s.Object] = true
		return first
	}
	isStart := s.Kind == string(plan.StartContainer)
	again := isStart && st.began[s.Object] > 0 && !st.inits[s.Object]
	late := !st.over.IsZero() && s.Begin.After(st.over)
	if isStart && !s.Failed {
		st.note(s)
	}
	return !again && !late
}

// note counts the start of a container.
func (st *start) note(s state.Span) {
	st.began[s.Object]++
	if delete(st.missing, s.Object); len(st.missing) == 0 && st.over.IsZero() {
		st.over = s.End
	}
}

func rowKind(kind string) string {
	return map[string]string{
		string(plan.RunSandbox):     "sandbox",
		string(plan.PullImage):      "pull",
		string(plan.PrepareVolume):  "volume",
		string(plan.CreateCgroup):   "cgroup",
		string(plan.StartContainer): "start",
		"Ready":                     "ready",
		"Started":                   "started",
	}[kind]
}

// rowObject returns an object of the history without its kind. The history has the form of plans.
func rowObject(kind, object string) string {
	if object == kind {
		return ""
	}
	return strings.TrimPrefix(object, kind+" ")
}

// addRuns adds the finished runs of init containers, for which the following containers waited.
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

// lastStart returns the last start of a container.
func (t *Timeline) lastStart(name string) *TimelineRow {
	for i := range slices.Backward(t.Rows) {
		if t.Rows[i].Kind == "start" && t.Rows[i].Object == name {
			return &t.Rows[i]
		}
	}
	return nil
}

// addReady adds the time at which a container without a readiness probe counts as ready: its start.
func (t *Timeline) addReady(pod *v1.Pod) {
	for _, ref := range podspec.RegularContainers(pod) {
		row := t.lastStart(ref.Name)
		if row != nil && !row.Failed && ref.ReadinessProbe == nil && ref.StartupProbe == nil {
			t.Rows = append(t.Rows, TimelineRow{Kind: "ready", Object: ref.Name, Begin: row.End, End: row.End})
		}
	}
}
