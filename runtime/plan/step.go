package plan

import (
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Kind is what a step does. Every change podctl makes to the world is of one of
// these kinds.
type Kind string

// The kinds of step.
const (
	// CreateCgroup creates the pod's own cgroup with its limits.
	CreateCgroup Kind = "CreateCgroup"
	// PrepareVolume makes a volume ready to be mounted, or checks a host path.
	PrepareVolume Kind = "PrepareVolume"
	// UpdateVolume writes new content into a volume that is in use, all files at
	// once. Containers that mount a subPath of it keep what they have, as they do
	// under a kubelet.
	UpdateVolume Kind = "UpdateVolume"
	// RemoveVolume unmounts and removes the pod's volumes.
	RemoveVolume Kind = "RemoveVolume"
	// PullImage pulls one image.
	PullImage Kind = "PullImage"
	// CheckContainer proves that a container can be configured: references,
	// user, mounts. It changes nothing and comes before anything is stopped.
	CheckContainer Kind = "CheckContainer"
	RunSandbox     Kind = "RunSandbox"
	StopSandbox    Kind = "StopSandbox"
	RemoveSandbox  Kind = "RemoveSandbox"
	// StartContainer creates and starts a container and runs its postStart hook.
	StartContainer Kind = "StartContainer"
	// StopContainer runs the preStop hook and stops a container.
	StopContainer   Kind = "StopContainer"
	RemoveContainer Kind = "RemoveContainer"
	// UpdateContainer changes cpu and memory of a running container.
	UpdateContainer Kind = "UpdateContainer"
	// UpdatePod changes the limits of the pod's own cgroup.
	UpdatePod Kind = "UpdatePod"
	// RemoveCgroup removes the pod's own cgroup once nothing runs in it.
	RemoveCgroup Kind = "RemoveCgroup"
	// ArchiveLogs moves the logs of a pod that is gone aside, so that a pod of
	// the same name starts at attempt zero.
	ArchiveLogs Kind = "ArchiveLogs"
	// RotateLog moves a container's log aside and makes the runtime reopen it.
	RotateLog Kind = "RotateLog"
)

// OnFailure says what a failed step means for the others.
type OnFailure string

// The consequences of a failed step.
const (
	// Abort ends the pass: no other step begins.
	Abort OnFailure = "abort"
	// SkipContainer skips the steps that come after this one and lets all
	// others go on.
	SkipContainer OnFailure = "skipContainer"
	// Continue lets even the steps after this one go on.
	Continue OnFailure = "continue"
)

// Step is one thing a pass does. It names what does not exist yet (a sandbox,
// an image id) by the step that will yield it; only the executor knows the ids.
type Step struct {
	// ID is unique in the plan, for example start-app.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// After lists the steps that must have ended before this one begins; of those in
	// AfterExit less is enough. Steps without a path between them may overlap.
	After     []string  `json:"after,omitempty"`
	OnFailure OnFailure `json:"onFailure"`

	Container     string                `json:"container,omitempty"`
	ContainerType podspec.ContainerType `json:"containerType,omitempty"`
	// ContainerID is the record that is stopped, removed or updated.
	ContainerID string `json:"containerID,omitempty"`
	// SandboxID is the sandbox that is stopped or removed, or in which a
	// container starts; empty when the plan's own RunSandbox step yields it.
	SandboxID string `json:"sandboxID,omitempty"`
	// Attempt is that of the sandbox or container which is created.
	Attempt uint32 `json:"attempt,omitempty"`
	Image   string `json:"image,omitempty"`
	Volume  string `json:"volume,omitempty"`
	// GracePeriodSeconds is the time a container has to end by itself, its
	// preStop hook included.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// StopAfter lists the stops that a sidecar waits for, once its preStop hook has
	// run, before it is asked to end: it is of use to others to the last. It waits
	// no longer than its grace period (kubelet: terminationOrdering).
	StopAfter []string `json:"stopAfter,omitempty"`
	// CreateAfter lists the steps after which a replacement is created already: beside
	// the stop of the container it replaces. It is started only after all of After. A
	// start without it creates when it starts.
	CreateAfter []string `json:"createAfter,omitempty"`
	// AfterExit lists those of After that are stops and of which this step only needs
	// that no process of the container is left: a replacement may start while the runtime
	// still clears up. Where that cannot be seen the stop has to end, as for all others.
	AfterExit []string `json:"afterExit,omitempty"`
	// PreStop and PostStart name the handler that runs: exec, httpGet, sleep,
	// tcpSocket. The executor takes its content from the manifest, never from a
	// plan.
	PreStop   string `json:"preStop,omitempty"`
	PostStart string `json:"postStart,omitempty"`

	Reason  model.Reason `json:"reason"`
	Message string       `json:"message"`
	// Changes are the fields that made the step necessary.
	Changes []Change `json:"changes,omitempty"`
	// Unchanged counts the fields beside them that are the same.
	Unchanged int `json:"unchanged,omitempty"`
}

// Change is one field that differs. Values of a sensitive one are left out.
type Change struct {
	Path      string `json:"path"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Sensitive bool   `json:"sensitive,omitempty"`
}
