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

// Input is everything a decision depends on.
type Input struct {
	podstatus.Input
	// Pod names the pod. It is set even when nothing is desired.
	Pod     model.PodRef
	Options Options
}

// State is what is true of the pod, as the input has it.
func (in *Input) State() *podstatus.Pod {
	facts := in.Input
	facts.NoBackoff, facts.ProbedSince = in.Options.IgnoreBackoff, in.Options.ProbedSince
	if in.afterEviction() {
		facts.Observed.Memory = facts.Observed.Memory.EvictedAnew()
	}
	return podstatus.New(&facts)
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
	// ProbedSince is since when the caller has asked the probes of the pod without a break; zero if it has not.
	// It acts on failures since then, however long ago they are.
	ProbedSince time.Time
	// PullBackoff holds containers whose image could not be pulled until the end of a back-off.
	// Without it every pass tries again.
	PullBackoff bool
	// KeepBasis keeps in the plan what it was made of, so that what changed since
	// can be named.
	KeepBasis bool
	// Admission admits the pod as a kubelet does; nil admits every pod.
	Admission *Admission
	// Refused is why an edit was not admitted: what is desired is then the pod as it was before. Nil
	// for none.
	Refused *Hold
	// Stop stops the pod until another pass starts it again: containers and sandboxes end, their
	// records stay, and nothing starts.
	Stop bool
	// Evict ends the pod to get back what it uses, until its manifest changes or somebody restarts it;
	// nil for a pod that goes on.
	Evict *model.Eviction
	// RemoveVolumes removes volumes that outlive their pod, on deletion.
	RemoveVolumes bool
}

func (o *Options) pullPolicy(own v1.PullPolicy) v1.PullPolicy { return cmp.Or(o.PullPolicy, own) }

func (o *Options) restarts(container string) bool { return slices.Contains(o.Restart, container) }

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
	// read. A saved plan is executed only while both are the same. Package planfile
	// fills them in.
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

	// Steps are in the order in which they are printed; their needs carry the order
	// in which they must happen.
	Steps []Step `json:"steps"`
	Holds []Hold `json:"holds"`
	Keeps []Keep `json:"keeps"`
	// Objects are what happens to each object, in the order in which it happens.
	Objects []Object `json:"-"`
	// Record are the edits of the manifest that a pass writes into podctl's record of the
	// pod and that no step brings about.
	Record []Edit `json:"record,omitempty"`
	// Adopts reports whether a pass makes podctl's record of a pod or a container that runs
	// without one.
	Adopts bool `json:"adopts,omitempty"`
	// Adopted are the definitions of containers that do not bear one that podctl can read, by
	// id, as its record shall have them.
	Adopted map[string]string `json:"-"`
	// Found are the resources of containers that run and of which podctl has no record, by
	// name; nil where they stay without one.
	Found map[string]*v1.ResourceRequirements `json:"-"`
	// Rejection is what podctl's record has of a pod that is not admitted; nil for one that is.
	Rejection *model.Rejection `json:"-"`
	// Eviction is what podctl's record has of a pod that is evicted; nil for one that is not.
	Eviction *model.Eviction `json:"-"`
	// Source says how the file that the manifest came from differs from what was applied.
	// It is empty if it does not, or if the manifest is not podctl's own copy.
	Source string `json:"source,omitempty"`
	// Drift names what changed behind podctl, Notes what is worth knowing and
	// needs no step.
	Drift []string `json:"drift"`
	Notes []string `json:"notes"`

	// Complete reports whether the pod is what the manifest asks for: no steps, no
	// holds, and nothing waited for.
	Complete bool `json:"complete"`
	// WaitingFor says what only time can bring before the next pass can do more.
	WaitingFor []string `json:"waitingFor"`
	// Later says what later passes will come to, as far as it is certain.
	Later   []string `json:"later"`
	Summary Summary  `json:"summary"`
	// ChangesAt is when another plan would be due although nothing happens: the first end of a
	// hold, or the pod's deadline. Zero means never.
	ChangesAt time.Time `json:"-"`
	// Recheck is how long after the pass it is worth looking whether a hold has ended; zero for never.
	Recheck time.Duration `json:"-"`
	// Resumes reports whether what the plan stops runs again in a later pass.
	Resumes bool `json:"-"`
	// Basis is what the plan was made of; only a saved plan has it.
	Basis *Basis `json:"basis,omitempty"`
}

// Basis is what a plan was made of: what was wanted, without the values of
// Secrets, and what was read of the world.
type Basis struct {
	Desired  *podspec.Desired  `json:"desired"`
	Observed map[string]string `json:"observed"`
}

// RuntimeRef names the runtime the plan was made for.
type RuntimeRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Hold is something that would be done, and is not done now. What is not in the document
// is for those who act on a hold: they do not read its reason.
type Hold struct {
	// Container is empty when the whole pod is held.
	Container string       `json:"container,omitempty"`
	Reason    model.Reason `json:"reason"`
	// Until is when the hold ends by itself; nil when only a change ends it.
	Until   *time.Time `json:"until,omitempty"`
	Message string     `json:"message"`
	// Estimated reports whether the time is a guess from the runtime's records, never
	// later than the true one.
	Estimated bool `json:"estimated,omitempty"`

	// Status is what the pod's status and events say of it, where a kubelet has other words than
	// the message.
	Status string `json:"-"`
	// Blocking reports whether neither time nor another look can end the hold: something
	// is missing, and the pod cannot become what the manifest says.
	Blocking bool `json:"-"`
	// Unstartable reports whether the container could not even be tried, which its status
	// shows like a start that failed.
	Unstartable bool `json:"-"`
	// Lacks reports whether the pod names an object, or a key of one, that is nowhere.
	Lacks bool `json:"-"`
	// Admission reports whether the pod, or an edit of it, was not admitted.
	Admission bool `json:"-"`
	// Evicted reports whether the pod is evicted.
	Evicted bool `json:"-"`
	// Unapplied reports whether the manifest does not count as applied: nobody has decided yet.
	Unapplied bool `json:"-"`
	// Recheck is how long after a pass it is worth looking whether the hold has ended: zero if Until says
	// when it ends, or if only a user, another manifest, or another container ends it.
	Recheck time.Duration `json:"-"`
	// Delay is the restart delay that holds the container; nil when something else does.
	Delay *podstatus.Delay `json:"-"`
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
	// IPs are the addresses of a sandbox, the primary one first.
	IPs []string `json:"-"`
}

// Lacks reports whether something of the pod is held because it names objects that are nowhere.
func (p *Plan) Lacks() bool {
	return slices.ContainsFunc(p.Holds, func(h Hold) bool { return h.Lacks })
}

// Unapplied reports whether the manifest does not count as applied after the pass.
func (p *Plan) Unapplied() bool {
	return slices.ContainsFunc(p.Holds, func(h Hold) bool { return h.Unapplied })
}

// Refused reports whether an edit is not admitted, or a pod of which it is not decided yet.
func (p *Plan) Refused() bool {
	return p.Rejection == nil && slices.ContainsFunc(p.Holds, func(h Hold) bool { return h.Admission })
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

// Pending reports whether the plan has something to execute.
func (p *Plan) Pending() bool { return len(p.Steps) > 0 }

// Records reports whether a pass changes podctl's record of the pod by more than what its
// steps do.
func (p *Plan) Records() bool { return len(p.Record) > 0 || p.Adopts }

// Only leaves out the steps that are not wanted, and nothing waits for what is left out.
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
