package plan

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// choice is what a pass should do by the pod's state alone: the kubelet's podActions with
// a cause for each entry. What cannot be done now is still in it.
type choice struct {
	killPod       bool
	createSandbox bool
	sandboxID     string
	attempt       uint32
	// cause is why the sandbox is created or the pod killed.
	cause cause
	// edited reports whether the sandbox is replaced because the manifest asks for another
	// one, which it cannot in a kubelet.
	edited bool
	// terminal reports whether the pod ends: whatever still runs is stopped and nothing is
	// started.
	terminal bool

	inits      []start
	regulars   []start
	ephemerals []start
	kills      []kill
	resets     []reset
	updates    []update
	updatePod  bool
	removed    []removal
	holds      []Hold
	keeps      []Keep
	waiting    []waiting
}

// decision is a choice without what cannot be done now. It does not change any more: steps
// and explanations are made from it.
type decision struct {
	choice
	// held reports whether the whole pod is left as it is.
	held bool
	// starts are the containers that start in this pass, in order.
	starts []start
	// proven are those whose images and configuration are proven before anything stops.
	// When running containers are stopped for a new sandbox these are all of the pod, also
	// those that start in later passes.
	proven []podspec.ContainerRef
}

// decide is the kubelet's computePodActions, with podctl's own rules for what
// the manifest no longer names (docs/differences.md), and for what cannot start.
func decide(pod *podstatus.Pod, opts *Options) *decision {
	return restrain(pod, opts, choose(pod, opts))
}

// cause is why something is done.
type cause struct {
	reason  model.Reason
	message string
	diff    diff.Diff
}

// explains writes a cause into a step.
func (c *cause) explains(s Step) Step {
	s.Reason, s.Message, s.Changes, s.Unchanged = c.reason, c.message, c.diff.Changes, c.diff.Unchanged
	return s
}

// start is a container that shall be started.
type start struct {
	cause
	ref podspec.ContainerRef
	// fresh reports whether the definition is new: no delay holds it.
	fresh bool
}

// kill is a running container, or one of unknown state, that shall be stopped.
type kill struct {
	cause
	container *model.Container
	ref       podspec.ContainerRef
	// grace is the time that the failed probe gives; nil when none does.
	grace *int64
}

// update is a running container whose resources change in place.
type update struct {
	container *model.Container
	ref       podspec.ContainerRef
	changes   []diff.Change
	// grows reports whether the container gets more than it has.
	grows bool
}

// reset is a record that a restart of all containers takes away.
type reset struct {
	container *model.Container
	ref       podspec.ContainerRef
	kill      bool
}

// removal is a record that the pod as it is wanted has no use for.
type removal struct {
	cause
	container *model.Container
}

// waiting is what only time can bring: that a container gets on, or without one that the
// records of all are gone.
type waiting struct {
	ref podspec.ContainerRef
	// hook reports whether another process runs the container's postStart hook.
	hook bool
}

// String is what a plan says of it.
func (w waiting) String() string {
	if w.hook {
		return "the postStart hook of " + w.ref.Name + " to finish"
	}
	switch w.ref.Type {
	case podspec.Init:
		return "init container " + w.ref.Name + " to finish"
	case podspec.Sidecar:
		return "sidecar " + w.ref.Name + " to pass its startup probe"
	case podspec.Regular, podspec.Ephemeral:
	}
	return "the next pass, which starts from the first container again"
}

// waitsFor reports whether the pass waits for a container.
func (c *choice) waitsFor(name string) bool {
	return slices.ContainsFunc(c.waiting, func(w waiting) bool { return w.ref.Container != nil && w.ref.Name == name })
}
