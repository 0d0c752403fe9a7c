package plan

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Make decides what one pass does to a pod. The same input gives the same plan, byte for byte.
func Make(in *Input) *Plan {
	p := &Plan{
		APIVersion: model.APIVersion,
		Kind:       "Plan",
		Pod:        in.Pod,
		Origin:     in.origin(),
		Runtime:    RuntimeRef{Name: in.Observed.Runtime.Name, Version: in.Observed.Runtime.Version},
		ObservedAt: in.Now,
		Rejection:  in.Observed.Memory.Rejection,
		Eviction:   in.Observed.Memory.Eviction,

		PendingResize: in.Observed.Memory.PendingResize,
	}
	switch evicted := in.evicted(); {
	case in.Desired == nil:
		p.Steps = layOutDeletion(in)
	case in.Desired.Stored && in.Observed.Memory.Deletion != nil:
		p.Holds = []Hold{deletionHold(in)}
	case in.ends():
		p.end(in)
	case in.Options.Stop:
		p.halt(in.State(), &in.Options)
	case evicted != nil:
		p.evict(in, evicted)
	default:
		p.decideOn(in)
	}
	p.Steps, p.Holds, p.Keeps = listed(p.Steps), listed(p.Holds), listed(p.Keeps)
	p.Drift, p.Notes, p.WaitingFor, p.Later = listed(p.Drift), listed(p.Notes), listed(p.WaitingFor), listed(p.Later)
	p.Complete = len(p.Steps) == 0 && len(p.Holds) == 0 && len(p.WaitingFor) == 0
	p.Recheck = recheck(p.Holds)
	p.recordObjects()
	return p
}

// recheck returns the shortest Recheck of the holds; zero if none has one.
func recheck(holds []Hold) time.Duration {
	first := time.Duration(0)
	for i := range holds {
		if after := holds[i].Recheck; after > 0 && (first == 0 || after < first) {
			first = after
		}
	}
	return first
}

// listed returns an empty list for nil, so that documents always contain the list.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// decideOn decides about an admitted pod, or holds one that is not admitted.
func (p *Plan) decideOn(in *Input) {
	pod, v := in.admit()
	d := &decision{held: true}
	if v.hold == nil {
		d = decide(pod, &in.Options)
	} else {
		d.holds = []Hold{*v.hold}
	}
	if !in.Desired.Stored {
		p.PendingResize = nil
	}
	if in.Options.Refused != nil {
		d.holds, p.PendingResize = append(d.holds, *in.Options.Refused), in.Options.Refused.Resize
	}
	p.Rejection, p.Eviction = v.rejection, nil
	p.fill(pod, &in.Options, d)
}

// fill adds the steps and explanations of a decision. Each line depends on those before.
func (p *Plan) fill(pod *podstatus.Pod, opts *Options, d *decision) {
	p.KillPod, p.CreateSandbox = d.killPod && !d.held, d.createSandbox && !d.held
	p.SandboxID, p.Attempt = d.sandboxID, d.attempt
	p.Holds = d.holds
	p.Steps = layOut(pod, opts, d)
	p.explain(pod, d)
	p.Record = recordEdits(pod, d, p.Steps)
	p.ChangesAt = changesAt(pod, p.Holds)
	p.Adopted, p.Found = adoptions(pod, p.Steps), foundResources(pod)
	p.Adopts = (pod.Observed.Unrecorded && len(p.Keeps) > 0) ||
		(appliedOf(pod) != nil && p.adopts(&pod.Observed.Memory))
}

// halt stops a pod for a while. A pod with restartPolicy Never does not start again in a later pass.
func (p *Plan) halt(pod *podstatus.Pod, opts *Options) {
	stopped := cause{reason: model.Terminated, message: "the pod is stopped until its next pass"}
	d := &decision{choice: choice{cause: stopped}}
	l := &layout{Pod: pod, opts: opts, decision: d}
	stopper{l}.stopPod(&proof{})
	p.Steps = l.steps
	p.KillPod = len(l.steps) > 0
	p.Resumes = pod.Manifest.Spec.RestartPolicy != v1.RestartPolicyNever
}

// changesAt returns when the plan changes by the passing of time alone.
func changesAt(pod *podstatus.Pod, holds []Hold) time.Time {
	first := time.Time{}
	if deadline := pod.Deadline(); !deadline.IsZero() && !pod.Over() {
		first = deadline
	}
	if at := pod.Desired.RestartedAt(); at.After(pod.Now) {
		first = model.Earlier(first, at)
	}
	for i := range holds {
		if until := holds[i].Until; until != nil {
			first = model.Earlier(first, *until)
		}
	}
	return first
}

// MakeDebug returns a plan that only starts one debug container, which is already in the manifest.
func MakeDebug(in *Input, container string) *Plan {
	p := Make(in)
	stays := !p.KillPod && !p.CreateSandbox
	p.Record, p.Adopts = nil, false
	p.Holds = slices.DeleteFunc(p.Holds, func(h Hold) bool { return h.Container != container })
	p.Only(func(s *Step) bool { return stays && s.Container == container })
	return p
}
