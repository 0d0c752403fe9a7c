package wait

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// Obstacle is something that a container, or the pod, waits for between two passes.
type Obstacle struct {
	// Container is empty for the pod as a whole.
	Container string
	// Text describes what it waits for.
	Text string
	// Since is when it began, Until when it ends by itself; zero if unknown.
	Since, Until time.Time
}

// report sends what the pod waits for to the user interface.
func (w *podWait) report(in *plan.Input, status *v1.PodStatus, p *plan.Plan) {
	if w.on.Report != nil {
		w.on.Report(model.RefOf(w.desired.Pod), append(w.retries(w.on.now()), obstacles(in, status, p, w.goal)...))
	}
}

// retries returns the failed steps of the last pass that are retried at retryAt.
func (r *retry) retries(now time.Time) []Obstacle {
	if r.last == nil || !now.Before(r.retryAt) {
		return nil
	}
	var list []Obstacle
	for i := range r.last.Failed {
		f := &r.last.Failed[i]
		list = append(list, Obstacle{
			Container: f.Step.Container,
			Text:      f.Step.Kind.Verb() + " failed, before the next try",
			Until:     r.retryAt,
		})
	}
	return list
}

// obstacles lists what holds the pod or its containers, and the goals that running containers have not reached.
func obstacles(in *plan.Input, status *v1.PodStatus, p *plan.Plan, goal Goal) []Obstacle {
	var list []Obstacle
	held := map[string]bool{}
	for i := range p.Holds {
		h := &p.Holds[i]
		held[h.Container] = true
		list = append(list, holding(h))
	}
	for _, ref := range podspec.Containers(in.Desired.Pod) {
		if s := model.StatusOf(status, ref.Name); s != nil && s.State.Running != nil && !held[ref.Name] {
			list = append(list, running(in, ref, s, goal)...)
		}
	}
	return list
}

// holding describes a hold.
func holding(h *plan.Hold) Obstacle {
	w := Obstacle{Container: h.Container, Text: h.Message}
	if h.Until != nil {
		w.Until = *h.Until
	}
	return w
}

// running lists what a running container has not reached: the end of an init container or of a pod that must complete,
// the startup probe, or the readiness probe.
func running(in *plan.Input, ref podspec.ContainerRef, s *v1.ContainerStatus, goal Goal) []Obstacle {
	since := s.State.Running.StartedAt.Time
	probes := probesOf(in, ref.Name)
	switch {
	case ref.StartupProbe != nil && (s.Started == nil || !*s.Started):
		return []Obstacle{{Container: ref.Name, Text: probing(model.Startup, ref.StartupProbe, probes), Since: since}}
	case ref.Type == podspec.Init, goal == Completed && ref.Type == podspec.Regular:
		return []Obstacle{{Container: ref.Name, Text: "runs", Since: since}}
	case ref.ReadinessProbe != nil && !s.Ready && goal != Started:
		return []Obstacle{{
			Container: ref.Name,
			Text:      probing(model.Readiness, ref.ReadinessProbe, probes),
			Since:     since,
		}}
	}
	return nil
}

// probesOf returns the records of the probes of a container's newest run.
func probesOf(in *plan.Input, name string) map[model.ProbeType]model.ProbeRecord {
	newest := in.Observed.Newest(func(c *model.Container) bool { return c.Name == name })
	if newest == nil {
		return nil
	}
	return in.Observed.Memory.Probes[newest.ID]
}

// probing describes a probe that has not passed: its last message, and how many runs in a row gave it, out of the
// number that is needed.
func probing(t model.ProbeType, p *v1.Probe, records map[model.ProbeType]model.ProbeRecord) string {
	record, known := records[t]
	if !known || record.Run == 0 {
		return fmt.Sprintf("%s probe: has not run yet", t)
	}
	text, threshold := record.Message, p.FailureThreshold
	if record.Last == model.ProbeSuccess {
		text, threshold = "passed", p.SuccessThreshold
	}
	count := fmt.Sprintf("%d/%d", record.Run, threshold)
	if record.Run > threshold {
		count = fmt.Sprintf("%d times", record.Run)
	}
	return fmt.Sprintf("%s probe (%s): %s", t, count, text)
}
