package plan

import (
	"slices"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// choice lists the actions that the pod's state requires: the kubelet's podActions, with a cause for each entry. It
// includes actions that cannot be done now.
type choice struct {
	killPod       bool
	createSandbox bool
	sandboxID     string
	attempt       uint32
	// cause explains why the sandbox is created or the pod killed.
	cause cause
	// edited reports whether the sandbox is replaced because the manifest changed, which a kubelet never does.
	edited bool
	// terminal reports whether the pod ends: everything that runs is stopped and nothing starts.
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

// decision is a choice without the actions that cannot be done now. It is final: steps and explanations are derived
// from it.
type decision struct {
	choice
	// held reports whether the whole pod is left as it is.
	held bool
	// keepsOld reports whether a container continues to run because its replacement cannot start.
	keepsOld bool
	// starts are the containers that start in this pass, in order.
	starts []start
	// proven are the containers whose images and configuration are checked before anything stops. If a new sandbox
	// replaces running containers, these are all containers of the pod, also those that start in later passes.
	proven []podspec.ContainerRef
}

// decide corresponds to the kubelet's computePodActions. It adds podctl's own rules for objects that left the manifest
// (docs/differences.md) and for containers that cannot start.
func decide(pod *podstatus.Pod, opts *Options) *decision {
	return restrain(pod, opts, choose(pod, opts))
}

// cause explains why something is done.
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

// start is a container to start.
type start struct {
	cause
	ref podspec.ContainerRef
	// fresh reports whether the definition is new. A fresh start is never delayed.
	fresh bool
}

// kill is a container to stop, running or in unknown state.
type kill struct {
	cause
	container *model.Container
	ref       podspec.ContainerRef
	// grace is the grace period of the failed probe in seconds; nil if there is none.
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

// reset is a record that a restart of all containers removes.
type reset struct {
	container *model.Container
	ref       podspec.ContainerRef
	kill      bool
}

// removal is a record that the wanted pod does not need.
type removal struct {
	cause
	container *model.Container
}

// waiting is an event that a later pass needs and no step causes: the progress of a container, or, without a container,
// the removal of all records.
type waiting struct {
	ref podspec.ContainerRef
	// hook reports whether another process runs the container's postStart hook.
	hook bool
}

// String returns the text for the plan.
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
