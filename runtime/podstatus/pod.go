package podstatus

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Input is the input for the state of a pod.
type Input struct {
	// Desired is the desired pod; nil to delete it.
	Desired  *podspec.Desired
	Observed model.Observed
	Now      time.Time
	// NoBackoff ignores all restart delays, at the user's request.
	NoBackoff bool
	// ProbedSince is the start of the caller's uninterrupted probing of the pod; zero if it does not probe. Failures
	// since then count, however old they are.
	ProbedSince time.Time
	// Cluster is the pod's state in the API of a cluster; nil without a cluster. The status then has the fields that
	// only a cluster needs.
	Cluster *Cluster
}

// Pod is the current state of a pod: the input in the order in which rules read it, with sandboxes and containers
// newest first.
type Pod struct {
	Desired *podspec.Desired
	// Manifest is the manifest of Desired; nil if nothing is desired.
	Manifest *v1.Pod
	Observed *model.Observed
	Now      time.Time

	Sandboxes  []model.Sandbox
	Containers []*model.Container
	// Active is the ID of the latest sandbox if it is ready; otherwise empty.
	Active string
	// Phase is empty if nothing is desired.
	Phase v1.PodPhase

	noBackoff   bool
	probedSince time.Time
	cluster     *Cluster
}

// New sorts the observed state of a pod.
func New(in *Input) *Pod {
	p := &Pod{
		Desired: in.Desired, Observed: &in.Observed, Now: in.Now,
		noBackoff: in.NoBackoff, probedSince: in.ProbedSince, cluster: in.Cluster,
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

// Find returns the latest record that matches; nil if there is none.
func (p *Pod) Find(match func(*model.Container) bool) *model.Container {
	for _, c := range p.Containers {
		if match(c) {
			return c
		}
	}
	return nil
}

// Newest returns the latest record of that name in any sandbox; nil if there is none. Restart policy, counts and delays
// depend on it.
func (p *Pod) Newest(name string) *model.Container {
	return p.Find(func(c *model.Container) bool { return c.Name == name })
}

// Current returns the latest record of that name in the active sandbox. Only this record shows the progress of an init
// container: a record of an earlier sandbox does not count for this one (kubernetes#140309).
func (p *Pod) Current(name string) *model.Container {
	if p.Active == "" {
		return nil
	}
	return p.Find(func(c *model.Container) bool { return c.Name == name && c.SandboxID == p.Active })
}

// NewestExited returns the latest exited record of that name in any sandbox. A restart delay counts from its end.
func (p *Pod) NewestExited(name string) *model.Container {
	return p.Find(func(c *model.Container) bool { return c.Name == name && c.State == model.Exited })
}

// AnyRunning reports whether any container runs, whatever its name is.
func (p *Pod) AnyRunning() bool {
	return p.Find(func(c *model.Container) bool { return c.State == model.Running }) != nil
}

// AnyRegular reports whether a regular container has a record. A record in unknown state does not count.
func (p *Pod) AnyRegular() bool {
	return anyRegular(p.Manifest, func(name string) bool {
		c := p.Newest(name)
		return c != nil && c.State != model.Unknown
	})
}

// Initialised reports whether a regular container has been created in the active sandbox, which happens only after
// initialization.
func (p *Pod) Initialised() bool {
	return anyRegular(p.Manifest, func(name string) bool {
		c := p.Current(name)
		return c != nil && (c.State == model.Created || c.State == model.Running)
	})
}

func anyRegular(pod *v1.Pod, matches func(name string) bool) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool { return matches(c.Name) })
}

// NextAttempt returns the attempt, and the restart count, of the next start: one more than that of the newest record
// that has run. A restart count must not count a start that never happened. A container that podctl created and never
// started is therefore removed before the start, which reuses its attempt. NextAttempt skips attempts that are in use:
// those of another tool's records, and reserved ones.
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

// attemptAfterRuns returns the attempt after the newest record that has run. Without one it is that of a container that
// was created and never started, or the one after the highest log file.
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

// starting reports whether the postStart hook of that container is still running.
func (p *Pod) starting(name string) bool {
	newest := p.Newest(name)
	return newest != nil && newest.Starting
}

// AwaitsRestart reports whether podctl stopped a container that must run again, and it has not run since.
func (p *Pod) AwaitsRestart(name string) bool {
	m := &p.Observed.Memory
	return m.End == nil && model.AwaitsRestart(p.Containers, name, m.PendingRestarts[name])
}

// StartTime returns when the pod was first applied. Without a record of that it is when its oldest sandbox was created.
func (p *Pod) StartTime() time.Time {
	if t := p.Observed.Memory.StartTime; !t.IsZero() {
		return t
	}
	if len(p.Sandboxes) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(p.Sandboxes, func(a, b model.Sandbox) int {
		return a.CreatedAt.Compare(b.CreatedAt)
	}).CreatedAt
}

// Over reports whether the pod has finished, or its deadline has passed.
func (p *Pod) Over() bool {
	return p.Phase == v1.PodSucceeded || p.Phase == v1.PodFailed || p.DeadlineExceeded()
}

// DeadlineExceeded reports whether activeDeadlineSeconds have passed since the pod was first applied. The end of the
// pod stops the time.
func (p *Pod) DeadlineExceeded() bool {
	deadline, until := p.Deadline(), p.Now
	if end := p.Observed.Memory.End; end != nil {
		until = end.At
	}
	return !deadline.IsZero() && !until.Before(deadline)
}

// Deadline returns when activeDeadlineSeconds will have passed; zero for a pod without it, and for one that has not
// started.
func (p *Pod) Deadline() time.Time {
	limit, started := p.Manifest.Spec.ActiveDeadlineSeconds, p.StartTime()
	if limit == nil || started.IsZero() {
		return time.Time{}
	}
	return started.Add(model.Seconds(*limit))
}

// Ago returns how long ago a time was, in kubectl's format.
func (p *Pod) Ago(t time.Time) string {
	if t.IsZero() || t.UnixNano() == 0 || p.Now.Before(t) {
		return "just now"
	}
	return duration.HumanDuration(p.Now.Sub(t)) + " ago"
}
