package plan

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Input is everything that a decision depends on.
type Input struct {
	podstatus.Input
	// Pod names the pod. It is set even if no manifest is desired.
	Pod     model.PodRef
	Options Options
}

// State returns the state of the pod according to the input.
func (in *Input) State() *podstatus.Pod {
	facts := in.Input
	facts.NoBackoff, facts.ProbedSince = in.Options.IgnoreBackoff, in.Options.ProbedSince
	if in.afterEviction() {
		facts.Observed.Memory = facts.Observed.Memory.AfterEviction()
	}
	return podstatus.New(&facts)
}

// Options are the options of one pass.
type Options struct {
	// PullPolicy overrides imagePullPolicy of every container if it is set.
	PullPolicy v1.PullPolicy
	// IgnoreBackoff starts containers that CrashLoopBackOff would hold.
	IgnoreBackoff bool
	// GracePeriod overrides the grace period of every stop, in seconds.
	GracePeriod *int64
	// Restart names containers to restart at the user's request.
	Restart []string
	// ProbedSince is the start of the caller's uninterrupted probing of the pod; zero if it does not probe. Failures
	// since then count, however old they are.
	ProbedSince time.Time
	// PullBackoff holds containers whose image could not be pulled until the end of a back-off. Without it every pass
	// tries again.
	PullBackoff bool
	// KeepBasis keeps the input in the plan, so that podctl can report what changed since.
	KeepBasis bool
	// Admission admits the pod as a kubelet does; nil admits every pod.
	Admission *Admission
	// Refused is the hold of an edit that was not admitted; nil if there is none. The desired pod is then the version
	// that keeps running.
	Refused *Hold
	// Stop stops the pod until another pass starts it again: containers and sandboxes end, their records stay, and
	// nothing starts.
	Stop bool
	// Evict ends the pod to free its resources, until its manifest changes or a user restarts it; nil if the pod is not
	// evicted.
	Evict *model.Eviction
	// End ends the pod for good because its source is deleting it, within GracePeriod: containers and sandboxes end,
	// and volumes and the cgroup are removed. The records, logs and the checkpoint stay until the pod is deleted. Once
	// the end has begun, every later pass continues it.
	End bool
	// RemoveVolumes also removes volumes that outlive their pod, on deletion.
	RemoveVolumes bool
}

func (o *Options) pullPolicy(own v1.PullPolicy) v1.PullPolicy { return cmp.Or(o.PullPolicy, own) }

func (o *Options) restarts(container string) bool { return slices.Contains(o.Restart, container) }

// Plan describes what one pass does to one pod, and why. It is plain data: callers can compare, keep and print it. The
// executor follows it exactly.
type Plan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Pod model.PodRef `json:"pod"`
	// Origin is a pod of the API server in the terms of its object; nil for other pods.
	Origin  *Origin    `json:"origin,omitempty"`
	Runtime RuntimeRef `json:"runtime"`
	// ObservedAt is the time the decisions were made for.
	ObservedAt time.Time `json:"observedAt"`
	// DesiredDigest and ObservedDigest identify the desired and the observed state. A saved plan is executed only while
	// both are the same. Package planfile sets them.
	DesiredDigest  string `json:"desiredDigest"`
	ObservedDigest string `json:"observedDigest"`

	// KillPod reports whether all running containers and all sandboxes stop.
	KillPod bool `json:"killPod"`
	// CreateSandbox reports whether the pass creates a sandbox with Attempt.
	CreateSandbox bool `json:"createSandbox"`
	// SandboxID is the sandbox that stays or is replaced. It is empty if there is none or if it has the wrong network
	// mode.
	SandboxID string `json:"sandboxID"`
	Attempt   uint32 `json:"attempt"`

	// Steps are in the order in which they are printed. Their needs define the order of execution.
	Steps []Step `json:"steps"`
	Holds []Hold `json:"holds"`
	Keeps []Keep `json:"keeps"`
	// Objects describe what happens to each object, in the order in which it happens.
	Objects []Object `json:"-"`
	// Record lists edits of the manifest without a step, which a pass writes into podctl's record of the pod.
	Record []Edit `json:"record,omitempty"`
	// Adopts reports whether a pass creates podctl's record of a pod or container that runs without one.
	Adopts bool `json:"adopts,omitempty"`
	// Adopted has the definitions to record for containers without a readable one, by container ID.
	Adopted map[string]string `json:"-"`
	// Found has the resources of running containers without a record, by container name. A nil value means that they
	// stay unrecorded.
	Found map[string]*v1.ResourceRequirements `json:"-"`
	// Rejection is recorded for a pod that is not admitted; nil if it is admitted.
	Rejection *model.Rejection `json:"-"`
	// PendingResize is recorded for a pod of the API server with a resize that waits; nil if there is none.
	PendingResize *model.PendingResize `json:"-"`
	// Eviction is recorded for an evicted pod; nil if it is not evicted.
	Eviction *model.Eviction `json:"-"`
	// End is recorded for a pod that its source is deleting; nil for other pods. Its field Done is as it will be once
	// every step is done.
	End *model.End `json:"-"`
	// Source describes how the manifest's source file differs from the applied manifest. It is empty without a
	// difference, or if the manifest is not podctl's own copy.
	Source string `json:"source,omitempty"`
	// Drift lists what changed outside podctl. Notes list information that needs no step.
	Drift []string `json:"drift"`
	Notes []string `json:"notes"`

	// Complete reports whether the pod matches the manifest: no steps, no holds, and nothing to wait for.
	Complete bool `json:"complete"`
	// WaitingFor lists what must happen by itself before the next pass can do more.
	WaitingFor []string `json:"waitingFor"`
	// Later describes later passes, as far as they are certain.
	Later   []string `json:"later"`
	Summary Summary  `json:"summary"`
	// ChangesAt is when another plan is due without any event: the first end of a hold, or the pod's deadline. Zero
	// means never.
	ChangesAt time.Time `json:"-"`
	// Recheck is how long after the pass a caller should check whether a hold has ended; zero means never.
	Recheck time.Duration `json:"-"`
	// Resumes reports whether a later pass starts again what the plan stops.
	Resumes bool `json:"-"`
	// Basis is the input of the plan; only a saved plan has it.
	Basis *Basis `json:"basis,omitempty"`
}

// Origin is the object of a pod in the API server.
type Origin struct {
	Source string `json:"source"`
	// Generation is metadata.generation of the version that the plan is for, and ObservedGeneration that of the version
	// that was applied last; zero without one.
	Generation         int64 `json:"generation,omitempty"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// origin returns the object of a pod of the API server; nil for other pods.
func (in *Input) origin() *Origin {
	if in.Desired == nil || !in.Desired.FromCluster() {
		return nil
	}
	o := &Origin{Source: podspec.OwnerAPI, Generation: in.Desired.Pod.Generation}
	if applied := in.Observed.Memory.Applied; applied != nil && applied.Pod != nil {
		o.ObservedGeneration = applied.Pod.Generation
	}
	return o
}

// Basis is the input of a plan: the desired state, without the values of Secrets, and the observed state.
type Basis struct {
	Desired  *podspec.Desired  `json:"desired"`
	Observed map[string]string `json:"observed"`
}

// RuntimeRef names the runtime the plan was made for.
type RuntimeRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Hold is an action that is needed and cannot be done now. Fields without a JSON name are for callers that act on a
// hold, so that they need not parse its reason.
type Hold struct {
	// Container is empty if the whole pod is held.
	Container string       `json:"container,omitempty"`
	Reason    model.Reason `json:"reason"`
	// Until is when the hold ends by itself; nil if only a change ends it.
	Until   *time.Time `json:"until,omitempty"`
	Message string     `json:"message"`
	// Estimated reports whether the time is estimated from the runtime's records. It is never later than the true time.
	Estimated bool `json:"estimated,omitempty"`

	// Status is the text for the pod's status and events, if a kubelet's text differs from the message.
	Status string `json:"-"`
	// Blocking reports whether neither time nor another check can end the hold, because a prerequisite is missing.
	Blocking bool `json:"-"`
	// Unstartable reports whether podctl did not try to start the container. Its status then shows a failed start.
	Unstartable bool `json:"-"`
	// MissingObject reports whether the pod names a missing object, or a missing key of one.
	MissingObject bool `json:"-"`
	// Admission reports whether the pod, or an edit of it, was not admitted.
	Admission bool `json:"-"`
	// Preempts are the pods that must end so that the pod is admitted; nil for other holds.
	Preempts *model.Preemption `json:"-"`
	// Resize is the resize of a pod of the API server that waits; nil for other holds.
	Resize *model.PendingResize `json:"-"`
	// Evicted reports whether the pod is evicted.
	Evicted bool `json:"-"`
	// Unapplied reports whether the manifest does not count as applied because nothing has been decided yet.
	Unapplied bool `json:"-"`
	// Recheck is how long after a pass a caller should check whether the hold has ended. It is zero if Until gives the
	// end, or if only a user, another manifest, or another container ends the hold.
	Recheck time.Duration `json:"-"`
	// Delay is the restart delay that holds the container; nil for other holds.
	Delay *podstatus.Delay `json:"-"`
}

// Keep is a container or sandbox that was checked and stays as it is.
type Keep struct {
	// Container is empty for the sandbox.
	Container     string                `json:"container,omitempty"`
	ContainerType podspec.ContainerType `json:"containerType,omitempty"`
	ContainerID   string                `json:"containerID,omitempty"`
	State         string                `json:"state"`
	Reason        model.Reason          `json:"reason"`
	Message       string                `json:"message"`
	// IPs are the addresses of a sandbox, the primary one first.
	IPs []string `json:"-"`
}

// MissesObjects reports whether the pod or a container is held because an object that it names is missing.
func (p *Plan) MissesObjects() bool {
	return slices.ContainsFunc(p.Holds, func(h Hold) bool { return h.MissingObject })
}

// Unapplied reports whether the manifest does not count as applied after the pass.
func (p *Plan) Unapplied() bool {
	return slices.ContainsFunc(p.Holds, func(h Hold) bool { return h.Unapplied })
}

// Refused reports whether an edit is not admitted, or the admission of the pod is not decided yet.
func (p *Plan) Refused() bool {
	return p.Rejection == nil && slices.ContainsFunc(p.Holds, func(h Hold) bool { return h.Admission })
}

// LongestGrace returns the longest grace period of the plan's containers, in seconds.
func (p *Plan) LongestGrace() int64 {
	longest := int64(0)
	for i := range p.Steps {
		if grace := p.Steps[i].GracePeriodSeconds; grace != nil {
			longest = max(longest, *grace)
		}
	}
	return longest
}

// Pending reports whether the plan has steps.
func (p *Plan) Pending() bool { return len(p.Steps) > 0 }

// Records reports whether a pass changes more of podctl's record of the pod than its steps do.
func (p *Plan) Records() bool { return len(p.Record) > 0 || p.Adopts }

// Only keeps the wanted steps. It drops the edges to all others.
func (p *Plan) Only(wanted func(*Step) bool) {
	kept := []Step{}
	ids := map[string]bool{}
	for i := range p.Steps {
		if s := &p.Steps[i]; wanted(s) {
			kept, ids[s.ID] = append(kept, *s), true
		}
	}
	for i := range kept {
		kept[i].Needs = kept[i].Needs.where(func(e Edge) bool { return ids[e.Step] })
	}
	p.Steps = kept
	p.recordObjects()
}
