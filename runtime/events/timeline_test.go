package events

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// TestTimelineEndsWithTheStart checks that spans after the start are left out.
func TestTimelineEndsWithTheStart(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	span := func(kind plan.Kind, object string, from, to float64) state.Span {
		at := func(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }
		return state.Span{Kind: string(kind), Object: object, Begin: at(from), End: at(to)}
	}
	failed := func(s state.Span) state.Span { s.Failed = true; return s }
	sandbox, start := span(plan.RunSandbox, "sandbox", 0, 1), plan.StartContainer
	for name, c := range map[string]struct {
		spans []state.Span
		want  string
	}{
		"a start": {
			[]state.Span{sandbox, span(start, "i", 1, 2), span(plan.PullImage, "b", 0, 9), span(start, "a", 3, 4), span(start, "b", 9, 10)},
			"sandbox pull b start i start a ready a start b ready b until 10",
		},
		"restarts and a debug container": {
			[]state.Span{
				sandbox, span(start, "a", 1, 2), span(start, "b", 1, 3), span(start, "a", 100, 101),
				span(plan.PullImage, "tools", 200, 201), span(start, "debugger", 201, 202), span(start, "b", 300, 301),
			},
			"sandbox start a start b ready a ready b until 3",
		},
		"a restart before another container has started": {
			[]state.Span{
				sandbox, span(start, "a", 1, 2), failed(span(start, "b", 1, 2)), span(start, "a", 50, 51),
				span(start, "b", 60, 61),
			},
			"sandbox start a start b ready a start b ready b until 1m1",
		},
		"an init container that failed first": {
			[]state.Span{sandbox, span(start, "i", 1, 2), span(start, "i", 12, 13), span(start, "a", 20, 21), span(start, "b", 20, 21)},
			"sandbox start i start i start a start b ready a ready b until 21",
		},
		"a probe that passes": {
			[]state.Span{
				sandbox, span(start, "a", 1, 2), span(start, "p", 1, 2), span("Ready", "p", 7, 7),
				span(start, "p", 90, 91), span("Ready", "p", 95, 95),
			},
			"sandbox start a start p ready a ready p until 7",
		},
		"a probe that passes after a restart only": {
			[]state.Span{sandbox, span(start, "a", 1, 2), span(start, "p", 1, 2), span(start, "p", 90, 91), span("Ready", "p", 95, 95)},
			"sandbox start a start p ready a until 2",
		},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "i"}}, Containers: []v1.Container{{Name: "a"}, {Name: "b"}}}}
		if strings.Contains(name, "probe") {
			pod.Spec.Containers[1] = v1.Container{Name: "p", ReadinessProbe: &v1.Probe{}}
		}
		timeline := NewTimeline(pod, &state.History{Spans: c.spans})
		if got := timelineText(timeline); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

func timelineText(t *Timeline) string {
	var words []string
	for _, r := range t.Rows {
		words = append(words, r.Kind)
		if r.Object != "" {
			words = append(words, r.Object)
		}
	}
	return strings.Join(append(words, "until", strings.TrimSuffix(t.End.Sub(t.Begin).String(), "s")), " ")
}
