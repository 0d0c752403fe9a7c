package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Input is everything a decision depends on.
type Input struct {
	// Pod names the pod. It is set even when nothing is desired.
	Pod model.PodRef
	// Desired is the pod as it shall be; nil when it shall be gone.
	Desired  *podspec.Desired
	Observed model.Observed
	Now      time.Time
	Options  Options
}

// Options are the user's wishes for one pass.
type Options struct {
	// PullPolicy overrides imagePullPolicy of every container when it is set.
	PullPolicy v1.PullPolicy
	// IgnoreBackoff starts containers that CrashLoopBackOff would hold.
	IgnoreBackoff bool
	// GracePeriod overrides the grace period of every stop, in seconds.
	GracePeriod *int64
	// Restart names containers that are started anew although nothing asks for it but
	// the user.
	Restart []string
	// KeepBasis keeps in the plan what it was made of, so that what changed since
	// can be named.
	KeepBasis bool
	// RemoveVolumes removes volumes that outlive their pod, on deletion.
	RemoveVolumes bool
}

// Plan is what one pass does to one pod, and why. It is plain data: it can be
// compared, kept and printed, and the executor follows it to the letter.
type Plan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Pod     model.PodRef `json:"pod"`
	Runtime RuntimeRef   `json:"runtime"`
	// ObservedAt is the time the decisions were made for.
	ObservedAt time.Time `json:"observedAt"`
	// DesiredDigest and ObservedDigest identify what was wanted and what was
	// read. A saved plan is executed only while both are the same.
	DesiredDigest  string `json:"desiredDigest"`
	ObservedDigest string `json:"observedDigest"`

	// KillPod stops everything that runs and every sandbox.
	KillPod bool `json:"killPod"`
	// CreateSandbox creates a sandbox with Attempt.
	CreateSandbox bool `json:"createSandbox"`
	// SandboxID is the sandbox that was judged: the one that stays, or the one
	// that is replaced; empty when there is none or when it is of the wrong
	// network mode.
	SandboxID string `json:"sandboxID"`
	Attempt   uint32 `json:"attempt"`

	// Steps are in the order in which they are printed; After carries the order
	// in which they must happen.
	Steps []Step `json:"steps"`
	Holds []Hold `json:"holds"`
	Keeps []Keep `json:"keeps"`
	// Drift names what changed behind podctl, Notes what is worth knowing and
	// needs no step.
	Drift []string `json:"drift"`
	Notes []string `json:"notes"`

	// Complete tells that the pod is what the manifest asks for: no steps, no
	// holds, and nothing waited for.
	Complete bool `json:"complete"`
	// WaitingFor says what only time can bring before the next pass can do more.
	WaitingFor []string `json:"waitingFor"`
	// Later says what later passes will come to, as far as it is certain.
	Later   []string `json:"later"`
	Summary Summary  `json:"summary"`
	// Basis is what the plan was made of; only a saved plan has it.
	Basis *Basis `json:"basis,omitempty"`
}

// RuntimeRef names the runtime the plan was made for.
type RuntimeRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Hold is something that would be done, and is not done now.
type Hold struct {
	// Container is empty when the whole pod is held.
	Container string       `json:"container,omitempty"`
	Reason    model.Reason `json:"reason"`
	// Until is when the hold ends by itself; nil when only a change ends it.
	Until   *time.Time `json:"until,omitempty"`
	Message string     `json:"message"`
	// Estimated tells that the time is a guess from the runtime's records, never
	// later than the true one.
	Estimated bool `json:"estimated,omitempty"`
}

// Keep is a container or sandbox that was considered and stays as it is.
type Keep struct {
	// Container is empty for the sandbox.
	Container     string                `json:"container,omitempty"`
	ContainerType podspec.ContainerType `json:"containerType,omitempty"`
	ContainerID   string                `json:"containerID,omitempty"`
	State         string                `json:"state"`
	Reason        model.Reason          `json:"reason"`
	Message       string                `json:"message"`
}

// Summary counts what a plan does, the sandbox being counted like a container.
type Summary struct {
	Start   int `json:"start"`
	Stop    int `json:"stop"`
	Replace int `json:"replace"`
	Update  int `json:"update"`
	Remove  int `json:"remove"`
	Keep    int `json:"keep"`
	Hold    int `json:"hold"`
}

// LongestGrace is the longest time in seconds that a container of the plan has to stop.
func (p *Plan) LongestGrace() int64 {
	longest := int64(0)
	for i := range p.Steps {
		if grace := p.Steps[i].GracePeriodSeconds; grace != nil {
			longest = max(longest, *grace)
		}
	}
	return longest
}

// Pending tells that the plan has something to execute.
func (p *Plan) Pending() bool { return len(p.Steps) > 0 }
