package podstatus

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Input is what the state of a pod is made of.
type Input struct {
	// Desired is the pod as it shall be; nil when it shall be gone.
	Desired  *podspec.Desired
	Observed model.Observed
	Now      time.Time
	// NoBackoff lifts all restart delays, as the user may ask for.
	NoBackoff bool
	// ProbedSince is since when the caller has asked the probes of the pod without a break; zero if it has
	// not. No failure since then is too old to act on.
	ProbedSince time.Time
}

// Pod is what is true of a pod now: the input in the order in which rules read it, with
// sandboxes and containers newest first.
type Pod struct {
	Desired *podspec.Desired
	// Manifest is that of Desired; nil when nothing is desired.
	Manifest *v1.Pod
	Observed *model.Observed
	Now      time.Time

	Sandboxes  []model.Sandbox
	Containers []*model.Container
	// Active is the sandbox the pod lives in: the latest one, if it is ready.
	Active string
	// Phase is empty when nothing is desired.
	Phase v1.PodPhase

	noBackoff   bool
	probedSince time.Time
}

// New puts in order what was observed of a pod.
func New(in *Input) *Pod {
	p := &Pod{
		Desired: in.Desired, Observed: &in.Observed, Now: in.Now, noBackoff: in.NoBackoff, probedSince: in.ProbedSince,
		Sandboxes: model.SortedSandboxes(in.Observed.Sandboxes), Containers: in.Observed.NewestFirst(),
	}
	if len(p.Sandboxes) > 0 && p.Sandboxes[0].State == model.SandboxReady {
		p.Active = p.Sandboxes[0].ID
	}
	if in.Desired != nil && in.Desired.Pod != nil {
		p.Manifest = in.Desired.Pod
		p.Phase = phaseOf(p)
	}
	return p
}

// Find is the latest record that matches; nil when there is none.
func (p *Pod) Find(match func(*model.Container) bool) *model.Container {
	for _, c := range p.Containers {
		if match(c) {
			return c
		}
	}
	return nil
}

// Newest is the latest record of that name in any sandbox; nil when there is
// none. Restart policy, counts and delays go by it.
func (p *Pod) Newest(name string) *model.Container {
	return p.Find(func(c *model.Container) bool { return c.Name == name })
}

// Current is the latest record of that name in the active sandbox. What an init
// container has done is judged by it alone: a record of an earlier sandbox says
// nothing of this one (kubernetes#140309).
func (p *Pod) Current(name string) *model.Container {
	if p.Active == "" {
		return nil
	}
	return p.Find(func(c *model.Container) bool { return c.Name == name && c.SandboxID == p.Active })
}

// NewestExited is the latest record of that name that has ended, in any
// sandbox: a restart delay counts from its end.
func (p *Pod) NewestExited(name string) *model.Container {
	return p.Find(func(c *model.Container) bool { return c.Name == name && c.State == model.Exited })
}

// AnyRunning reports whether some container runs, whatever its name.
func (p *Pod) AnyRunning() bool {
	return p.Find(func(c *model.Container) bool { return c.State == model.Running }) != nil
}

// AnyRegular reports whether some regular container has a record that shows
// it was there. One of unknown state shows nothing.
func (p *Pod) AnyRegular() bool {
	return anyRegular(p.Manifest, func(name string) bool {
		c := p.Newest(name)
		return c != nil && c.State != model.Unknown
	})
}

// Initialised reports whether a regular container has come as far as being
// created in the active sandbox, which it can only after initialisation.
func (p *Pod) Initialised() bool {
	return anyRegular(p.Manifest, func(name string) bool {
		c := p.Current(name)
		return c != nil && (c.State == model.Created || c.State == model.Running)
	})
}

func anyRegular(pod *v1.Pod, matches func(name string) bool) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool { return matches(c.Name) })
}

// NextAttempt is the attempt, and the restart count, of the next start: one more than that of the newest
// record that has run. What podctl created and never started is removed before the start, which takes its
// attempt: a restart count must not count a start that never happened. Attempts that others hold are left out:
// those of another tool's records, and those that turned out to be taken.
func (p *Pod) NextAttempt(name string) uint32 {
	next := p.attemptAfterRuns(name)
	for _, c := range p.Containers {
		if c.Name == name && c.State == model.Created && !NeverStarted(c) {
			next = max(next, c.RestartCount+1)
		}
	}
	if reserved, ok := p.Observed.Reserved[name]; ok {
		next = max(next, reserved+1)
	}
	return next
}

// attemptAfterRuns is the attempt after the newest record that has run. Without one it is that of a container that was
// created for it and never started, or the one after the highest log file's.
func (p *Pod) attemptAfterRuns(name string) uint32 {
	unstarted := p.Find(func(c *model.Container) bool { return c.Name == name && NeverStarted(c) })
	ran := p.Find(func(c *model.Container) bool { return c.Name == name && !NeverStarted(c) })
	last, logged := p.Observed.LogAttempts[name]
	switch {
	case ran != nil:
		return ran.RestartCount + 1
	case unstarted != nil:
		return unstarted.RestartCount
	case logged:
		return last + 1
	}
	return 0
}

// NeverStarted reports whether podctl created a container and was interrupted before it started it. The next plan
// removes it.
func NeverStarted(c *model.Container) bool {
	return c.State == model.Created && c.SpecHash != "" && !c.Debug
}

// starting reports whether the container of that name was started and its postStart hook is still running.
func (p *Pod) starting(name string) bool {
	newest := p.Newest(name)
	return newest != nil && newest.Starting
}

// AwaitsRestart reports whether podctl stopped a container so that it runs again, and it
// has not run since.
func (p *Pod) AwaitsRestart(name string) bool {
	return model.AwaitsRestart(p.Containers, name, p.Observed.Memory.PendingRestarts[name])
}

// StartTime is when the pod was applied first; without a record of that it is when
// its oldest sandbox was created.
func (p *Pod) StartTime() time.Time {
	if t := p.Observed.Memory.StartTime; !t.IsZero() {
		return t
	}
	if len(p.Sandboxes) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(p.Sandboxes, func(a, b model.Sandbox) int { return a.CreatedAt.Compare(b.CreatedAt) }).CreatedAt
}

// Over reports whether the pod has finished, or has run out of its time.
func (p *Pod) Over() bool {
	return p.Phase == v1.PodSucceeded || p.Phase == v1.PodFailed || p.DeadlineExceeded()
}

// DeadlineExceeded reports whether activeDeadlineSeconds have passed since the pod
// was applied first.
func (p *Pod) DeadlineExceeded() bool {
	deadline := p.Deadline()
	return !deadline.IsZero() && !p.Now.Before(deadline)
}

// Deadline is when activeDeadlineSeconds will have passed; zero for a pod without it, and for one
// that has not started.
func (p *Pod) Deadline() time.Time {
	limit, started := p.Manifest.Spec.ActiveDeadlineSeconds, p.StartTime()
	if limit == nil || started.IsZero() {
		return time.Time{}
	}
	return started.Add(model.Seconds(*limit))
}

// Ago says how long before now a moment was, as kubectl writes it.
func (p *Pod) Ago(t time.Time) string {
	if t.IsZero() || t.UnixNano() == 0 || p.Now.Before(t) {
		return "just now"
	}
	return duration.HumanDuration(p.Now.Sub(t)) + " ago"
}
