package why

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// Input is everything that an explanation depends on.
type Input struct {
	Now time.Time
	Pod model.PodRef
	// Container limits the explanation to one container and the pod as a whole; empty for all.
	Container string
	// Desired is the applied pod, and Status the pod with its status. Both are nil for a pod that is gone.
	Desired *podspec.Desired
	Status  *v1.Pod
	// Memory is podctl's record of the pod; nil if there is none.
	Memory *model.Memory
	// History has the events and the decisions of the pod.
	History *state.History
	// Plan is that of the next pass; nil if it is unknown. PlanError is then the reason, if there is one.
	Plan      *plan.Plan
	PlanError string
	// Agent is the pod in the status of the agent; nil if no agent keeps it.
	Agent *api.Pod
}

// Explanation explains the state of a pod.
type Explanation struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Pod        model.PodRef `json:"pod"`
	// Gone reports whether the pod was deleted. Only its history is left.
	Gone bool `json:"gone,omitempty"`
	// Object is the pod as its source knows it; nil for a pod that is gone.
	Object *Object `json:"object,omitempty"`
	// Subjects are the pod as a whole, if there is something to explain, and its containers.
	Subjects []Subject `json:"subjects"`
	// Next is what the next pass does; nil for a pod that is gone.
	Next *Next `json:"next,omitempty"`
	// Decisions are those of earlier passes, and Events the failures of probes and hooks. The newest is the last.
	Decisions []state.Decision `json:"decisions"`
	Events    []state.PodEvent `json:"events"`
}

// Object is a pod as its source knows it.
type Object struct {
	// Source is api, or where the manifest came from.
	Source string `json:"source"`
	// Generation is metadata.generation of the version that its source wants, and ObservedGeneration that of the
	// applied version. Only pods of the API server have them.
	Generation         int64 `json:"generation,omitempty"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// DeletionTimestamp is when the grace period of a deletion ends; nil if the pod is not being deleted.
	DeletionTimestamp *time.Time `json:"deletionTimestamp,omitempty"`
	Phase             string     `json:"phase"`
}

// Subject is the pod or one of its containers.
type Subject struct {
	// Container is empty for the pod.
	Container     string                `json:"container,omitempty"`
	ContainerType podspec.ContainerType `json:"containerType,omitempty"`
	// State is Running, Waiting, Terminated or, for the pod, its phase. Since is when it began, as far as it is known.
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Causes explain the state, the most important one first.
	Causes []Cause `json:"causes"`
}

// Cause is a reason for a state, and what would change it.
type Cause struct {
	Reason  model.Reason `json:"reason,omitempty"`
	Message string       `json:"message"`
	// Until is when the cause ends by itself; nil if it does not, or if the time is unknown.
	Until *time.Time `json:"until,omitempty"`
	// Changes are the events and commands that change the state.
	Changes []string `json:"changes,omitempty"`
}

// Next is the next pass of a pod.
type Next struct {
	// By is what makes the pass: agent, or command if no agent keeps the pod.
	By string `json:"by"`
	// At is when the agent makes it if nothing happens before; nil if that is unknown.
	At *time.Time `json:"at,omitempty"`
	// Running is the kind of the pass that the agent makes now; empty if there is none.
	Running string `json:"running,omitempty"`
	// Plan is what the pass does; nil if it is unknown. Error is then the reason.
	Plan  *plan.Plan `json:"plan,omitempty"`
	Error string     `json:"error,omitempty"`
}

// The values of Next.By.
const (
	ByAgent   = "agent"
	ByCommand = "command"
)

// Explain explains the state of a pod.
func Explain(in *Input) *Explanation {
	e := &Explanation{
		APIVersion: model.APIVersion, Kind: "PodExplanation", Pod: in.Pod, Gone: in.Status == nil,
		Subjects: []Subject{}, Decisions: []state.Decision{}, Events: []state.PodEvent{},
	}
	for _, d := range in.History.Decisions {
		if in.concerns(d.Container) {
			e.Decisions = append(e.Decisions, d)
		}
	}
	for _, ev := range in.History.Events {
		if in.concerns(ev.Container) && isFinding(&ev) {
			e.Events = append(e.Events, ev)
		}
	}
	if e.Gone {
		return e
	}
	x := &explainer{changes{in}}
	e.Object, e.Next, e.Subjects = x.object(), x.next(), x.subjects()
	return e
}

// concerns reports whether something about a container, or about the pod, belongs to the explanation.
func (in *Input) concerns(container string) bool {
	return in.Container == "" || container == "" || container == in.Container
}

// isFinding reports whether an event is a cause of decisions, and not their result.
func isFinding(e *state.PodEvent) bool {
	return slices.Contains([]string{"Unhealthy", "ProbeWarning", "FailedPreStopHook", "FailedPostStartHook"}, e.Reason)
}

// explainer explains one pod that exists.
type explainer struct{ changes }

func (x *explainer) object() *Object {
	o := &Object{Source: x.Desired.Source, Phase: string(x.Status.Status.Phase)}
	if x.fromCluster() {
		o.Source, o.ObservedGeneration = podspec.OwnerAPI, x.Desired.Pod.Generation
		o.Generation = o.ObservedGeneration
		if x.Agent != nil {
			o.Generation = max(o.Generation, x.Agent.Generation)
		}
	}
	if at := x.Status.DeletionTimestamp; at != nil {
		o.DeletionTimestamp = &at.Time
	}
	return o
}

func (x *explainer) next() *Next {
	n := &Next{By: ByCommand, Plan: x.Plan, Error: x.PlanError}
	if x.Agent != nil {
		n.By, n.Running = ByAgent, x.Agent.CurrentPass
		if at := x.Agent.NextPass; !at.IsZero() {
			n.At = &at
		}
	}
	return n
}
