package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Admission is how pods are admitted.
type Admission struct {
	admission.Settings
	// Final leaves a pod rejected that was, until its manifest or the settings change.
	Final bool
	// First are pods that come before this one and were not admitted yet, in order.
	First []*v1.Pod
	// Going are pods that nobody wants any more, and that are still there.
	Going []types.UID
	// Conditions are what the node is short of.
	Conditions []v1.NodeConditionType
}

// stays reports whether a rejection of the manifest holds.
func (how *Admission) stays(r *model.Rejection) bool {
	return r != nil && how.Final && r.Settings == how.String()
}

// verdict is what came of the admission of a pod.
type verdict struct {
	// rejection is what podctl's record has of it afterwards; nil for a pod that is admitted.
	rejection *model.Rejection
	// hold is why the pod is not what the manifest says; nil for one that is admitted.
	hold *Hold
	// refused reports whether only an edit is not admitted.
	refused bool
}

// Refused is why an edit of a pod is not admitted, which goes on as it is applied; nil if it is, and
// for a pod that is rejected as a whole.
func (in *Input) Refused() *Hold {
	if !in.Admits() {
		return nil
	}
	_, v := in.admit()
	if !v.refused {
		return nil
	}
	v.hold.Unapplied = false // What goes on is applied.
	return v.hold
}

// Admits reports whether it depends on other pods what becomes of the pod.
func (in *Input) Admits() bool {
	how, memory := in.Options.Admission, &in.Observed.Memory
	if in.Desired == nil || how == nil || in.Options.Stop {
		return false
	}
	same := memory.Applied != nil && memory.Applied.SameManifest(in.Desired)
	return !same || in.afterEviction() || (memory.Rejection != nil && !how.stays(memory.Rejection))
}

// admit admits the pod, or says why not. The state is that of a pod that is not rejected.
func (in *Input) admit() (*podstatus.Pod, verdict) {
	admitted := *in
	admitted.Observed.Memory.Rejection = nil
	pod := admitted.State()
	how := in.Options.Admission
	if how == nil || pod.Over() {
		return pod, verdict{}
	}
	return pod, (&admitter{pod, how, in.Observed.Memory.Rejection}).judge()
}

// admitter decides whether a pod is admitted (kubelet: HandlePodAdditions, canAdmitPod).
type admitter struct {
	*podstatus.Pod
	how *Admission
	// before is why the pod was rejected; nil for none.
	before *model.Rejection
}

// judge looks at a pod that is new, and at what an edit adds to one that was admitted. A pod that was
// admitted stays so, whatever comes after it: nothing that runs is stopped.
func (a *admitter) judge() verdict {
	applied, runs := a.Observed.Memory.Applied, a.Active != "" || a.AnyRunning()
	same := applied != nil && applied.SameManifest(a.Desired)
	switch {
	case same && a.how.stays(a.before):
		return verdict{rejection: a.before, hold: held(a.before)}
	case a.before != nil, applied == nil && !runs:
		return a.newcomer()
	case applied == nil, same:
		return verdict{}
	}
	return a.edited(applied.Pod, runs)
}

// newcomer admits a pod of which nothing is there, or says why not. One that would be admitted
// without those that are about to go waits for them.
func (a *admitter) newcomer() verdict {
	others := a.others(a.Observed.Others)
	found := a.ask(a.Manifest, nil, others)
	if found == nil {
		return verdict{}
	}
	if going := a.goingFor(nil, others); going != nil {
		return verdict{rejection: a.before, hold: waits(going, found)}
	}
	return a.reject(found)
}

// edited admits what an edit adds. Without room for it the pod goes on as it is, and the edit is not
// applied (kubelet: handlePodResourcesResize); one of which nothing is there is rejected.
func (a *admitter) edited(before *v1.Pod, runs bool) verdict {
	found := a.ask(a.Manifest, before, a.Observed.Others)
	switch going := a.goingFor(before, a.Observed.Others); {
	case found == nil:
		return verdict{}
	case going != nil:
		return verdict{hold: waits(going, found), refused: true}
	case runs:
		return verdict{hold: &Hold{
			Reason: found.Reason, Message: found.Message + "; the edit is not applied, and the pod runs on as it is", Status: found.Message,
			Blocking: true, Admission: true, Unapplied: true,
		}, refused: true}
	}
	return a.reject(found)
}

// reject rejects the pod. One that was for the same reason is not rejected anew.
func (a *admitter) reject(found *model.Rejection) verdict {
	found.At, found.Settings = a.Now, a.how.String()
	if a.before != nil && a.before.Reason == found.Reason && a.before.Message == found.Message && a.before.Settings == found.Settings {
		found = a.before
	}
	return verdict{rejection: found, hold: held(found)}
}

func held(r *model.Rejection) *Hold {
	return &Hold{Reason: r.Reason, Message: r.StatusMessage(), Status: r.Message, Blocking: true, Admission: true}
}

func (a *admitter) ask(pod, before *v1.Pod, others []model.Admitted) *model.Rejection {
	return admission.Admit(&admission.Request{
		Pod: pod, Before: before, Others: others, Machine: &a.Observed.Machine, Settings: &a.how.Settings, Conditions: a.how.Conditions,
	})
}

// others are the pods that were admitted, with those that come first and fit.
func (a *admitter) others(admitted []model.Admitted) []model.Admitted {
	all := slices.Clone(admitted)
	for _, first := range a.how.First {
		known := slices.ContainsFunc(all, func(o model.Admitted) bool { return o.Pod.UID == first.UID })
		if !known && a.ask(first, nil, all) == nil {
			all = append(all, admission.TakenBy(first))
		}
	}
	return all
}

// goingFor is a pod that is about to go, if there is room once all those are gone.
func (a *admitter) goingFor(before *v1.Pod, others []model.Admitted) *model.PodRef {
	goes := func(o model.Admitted) bool { return o.Going || slices.Contains(a.how.Going, o.Pod.UID) }
	i := slices.IndexFunc(others, goes)
	if i < 0 || a.ask(a.Manifest, before, slices.DeleteFunc(slices.Clone(others), goes)) != nil {
		return nil
	}
	return &others[i].Pod
}

// waits holds the pod until another one is gone.
func waits(going *model.PodRef, found *model.Rejection) *Hold {
	return &Hold{
		Reason: found.Reason, Message: fmt.Sprintf("%s; it is tried again when pod %s is gone", found.Message, going), Status: found.Message,
		Admission: true, Unapplied: true,
	}
}
