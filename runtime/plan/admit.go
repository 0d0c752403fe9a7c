package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Admission configures how pods are admitted.
type Admission struct {
	admission.Settings
	// Final keeps a rejected pod rejected until its manifest or the settings change, as the phase Failed is final in
	// Kubernetes. Retries would start pods hours later, in no order.
	Final bool
	// First lists earlier pods that are not admitted yet, in order.
	First []*podspec.Desired
	// Resizes are the waiting resizes that come before that of the pod, in order.
	Resizes []Resize
	// Terminating lists pods that are no longer desired but still exist.
	Terminating []types.UID
	// Conditions are the pressure conditions of the node.
	Conditions []v1.NodeConditionType
	// Node is the Node in the API; nil if there is none.
	Node *admission.Node
	// Preempts lets a critical pod wait for the end of pods that it preempts. The caller of the pass must end them.
	Preempts bool
}

// Resize is a resize that waits.
type Resize struct {
	// Wanted is the pod with the new resources, and Before the pod with its present ones.
	Wanted *podspec.Desired
	Before *v1.Pod
}

// stays reports whether an earlier rejection of the manifest still applies.
func (how *Admission) stays(r *model.Rejection) bool {
	return r != nil && how.Final && r.Settings == how.String()
}

// verdict is the result of the admission of a pod.
type verdict struct {
	// rejection is recorded for the pod; nil if the pod is admitted.
	rejection *model.Rejection
	// hold explains why the pod or the edit is not admitted; nil if it is.
	hold *Hold
	// refused reports whether only an edit is not admitted.
	refused bool
}

// Refused returns why an edit of a pod is not admitted, and the version of the pod that keeps running: the applied one,
// or for a resize of a pod of the API server the edited one with the applied resources. The hold is nil if the edit is
// admitted, and for a pod that is rejected as a whole.
func (in *Input) Refused() (*Hold, *podspec.Desired) {
	if !in.NeedsAdmission() {
		return nil, nil
	}
	_, v := in.admit()
	if !v.refused {
		return nil, nil
	}
	v.hold.Unapplied = false
	if v.hold.Resize != nil {
		return v.hold, podspec.WithResources(in.Desired, in.Observed.Memory.Applied.Pod)
	}
	applied := *in.Observed.Memory.Applied
	return v.hold, &applied
}

// NeedsAdmission reports whether the pod, or an edit of it, must be admitted. The plan then depends on other pods.
func (in *Input) NeedsAdmission() bool {
	how, memory := in.Options.Admission, &in.Observed.Memory
	if in.Desired == nil || how == nil || in.Options.Stop || in.ends() {
		return false
	}
	same := memory.Applied != nil && memory.Applied.SameManifest(in.Desired)
	return !same || in.afterEviction() || (memory.Rejection != nil && !how.stays(memory.Rejection))
}

// admit admits the pod or returns why not. The returned state ignores an earlier rejection.
func (in *Input) admit() (*podstatus.Pod, verdict) {
	admitted := *in
	admitted.Observed.Memory.Rejection = nil
	pod := admitted.State()
	how := in.Options.Admission
	if pod.Over() || how == nil && !in.Desired.FromCluster() {
		return pod, verdict{}
	}
	return pod, in.admitter(pod).judge()
}

// admitter decides whether a pod is admitted (kubelet: HandlePodAdditions, canAdmitPod).
type admitter struct {
	*podstatus.Pod
	// how is nil without admission. Only a pod of the API server is then checked, for fields that podctl does not
	// support.
	how *Admission
	// before is the earlier rejection of the pod; nil if there is none.
	before *model.Rejection
}

func (in *Input) admitter(pod *podstatus.Pod) *admitter {
	return &admitter{pod, in.Options.Admission, in.Observed.Memory.Rejection}
}

// judge checks a new pod, or only the additional demand of an edit. An admitted pod stays admitted, whatever is added
// later: podctl stops nothing that runs.
func (a *admitter) judge() verdict {
	applied, runs := a.Observed.Memory.Applied, a.Active != "" || a.AnyRunning()
	same := applied != nil && applied.SameManifest(a.Desired)
	switch {
	case a.before != nil && (a.Desired.FromCluster() || same && a.how.stays(a.before)):
		// A rejected pod of the API server stays rejected, as with a kubelet, because its status is Failed.
		return verdict{rejection: a.before, hold: holdRejected(a.before)}
	case a.before != nil, applied == nil && !runs:
		return a.newPod()
	case applied == nil, same:
		return verdict{}
	case a.Desired.FromCluster():
		return a.editedInCluster(applied.Pod)
	}
	return a.edited(applied.Pod, runs)
}

// newPod admits a pod that has no containers or sandbox yet, or returns why not. A pod that fits once other pods have
// terminated waits for them.
func (a *admitter) newPod() verdict {
	others := a.others(a.Observed.Others)
	found := a.check(a.Desired, nil, others)
	if found == nil {
		return verdict{}
	}
	if terminating := a.terminatingFor(nil, others); terminating != nil {
		return verdict{rejection: a.before, hold: holdUntilGone(terminating, found)}
	}
	if a.preempts() {
		staying := slices.DeleteFunc(others, a.goes)
		preemption, why := admission.Preempt(a.request(a.Desired, nil, staying))
		if why == nil {
			return verdict{rejection: a.before, hold: holdUntilPreempted(preemption, found)}
		}
		found = why
	}
	return a.reject(found)
}

// preempts reports whether other pods end if they leave too few resources for the pod.
func (a *admitter) preempts() bool {
	return a.how != nil && a.how.Preempts && podspec.IsCritical(a.Desired.Pod)
}

// edited admits the additional demand of an edit. If it does not fit, a running pod stays as it is and the edit is not
// applied (kubelet: handlePodResourcesResize). A pod that does not run is rejected.
func (a *admitter) edited(before *v1.Pod, runs bool) verdict {
	found := a.check(a.Desired, before, a.Observed.Others)
	switch terminating := a.terminatingFor(before, a.Observed.Others); {
	case found == nil:
		return verdict{}
	case terminating != nil:
		return verdict{hold: holdUntilGone(terminating, found), refused: true}
	case runs:
		return verdict{hold: holdEdit(found, "the edit is not applied, and the pod continues unchanged"), refused: true}
	}
	return a.reject(found)
}

// editedInCluster admits the additional demand of a resize. If it does not fit, the pod gets all other edits. Nothing
// else in an edit is checked, except for fields that podctl does not support (kubelet: HandlePodUpdates,
// handlePodResourcesResize).
func (a *admitter) editedInCluster(before *v1.Pod) verdict {
	if found := admission.Unsupported(a.Desired.Pod, before); found != nil {
		return verdict{hold: holdEdit(found, "the edit is not applied, and the pod continues unchanged"), refused: true}
	}
	if a.how == nil || podspec.WithResources(a.Desired, before) == a.Desired {
		return verdict{}
	}
	found := a.check(a.Desired, before, a.resized(before, a.Observed.Others))
	if found == nil {
		return verdict{}
	}
	hold, pod := holdEdit(found, "the resize waits, and the pod keeps its resources"), a.Desired.Pod
	hold.Resize = &model.PendingResize{Reason: found.Reason, Message: found.Message, Generation: pod.Generation}
	hold.Status = model.ResizeText("Pod resize "+string(found.Reason), &pod.Spec, pod.Generation, found.Message)
	return verdict{hold: hold, refused: true}
}

// holdEdit holds an edit. The text describes the effect.
func holdEdit(found *model.Rejection, effect string) *Hold {
	return &Hold{
		Reason:    found.Reason,
		Message:   found.Message + "; " + effect,
		Status:    found.Message,
		Blocking:  true,
		Admission: true,
		Unapplied: true,
	}
}

// reject rejects the pod. If it was rejected before for the same reason, the earlier rejection stays.
func (a *admitter) reject(found *model.Rejection) verdict {
	if found.At = a.Now; a.how != nil {
		found.Settings = a.how.String()
	}
	last := a.before
	if last != nil && last.Reason == found.Reason && last.Message == found.Message && last.Settings == found.Settings {
		found = last
	}
	return verdict{rejection: found, hold: holdRejected(found)}
}

func holdRejected(r *model.Rejection) *Hold {
	return &Hold{Reason: r.Reason, Message: r.StatusMessage(), Status: r.Message, Blocking: true, Admission: true}
}

func (a *admitter) check(d *podspec.Desired, before *v1.Pod, others []model.Admitted) *model.Rejection {
	if a.how == nil {
		return admission.Unsupported(d.Pod, before)
	}
	return admission.Admit(a.request(d, before, others))
}

func (a *admitter) request(d *podspec.Desired, before *v1.Pod, others []model.Admitted) *admission.Request {
	var devices *model.DeviceFault
	if d == a.Desired {
		devices = a.Observed.Devices.Rejecting()
	}
	return &admission.Request{
		Devices:     devices,
		Pod:         d.Pod,
		Before:      before,
		Others:      others,
		Machine:     &a.Observed.Machine,
		Settings:    &a.how.Settings,
		Conditions:  a.how.Conditions,
		Node:        a.how.Node,
		FromCluster: d.FromCluster(),
	}
}

// others returns the admitted pods, and the earlier pods that are not admitted yet and fit. A critical pod does not
// wait for pods that it would preempt.
func (a *admitter) others(admitted []model.Admitted) []model.Admitted {
	all := slices.Clone(admitted)
	if a.how == nil {
		return all
	}
	for _, first := range a.how.First {
		known := slices.ContainsFunc(all, func(o model.Admitted) bool { return o.Pod.UID == first.Pod.UID })
		preempted := a.preempts() && podspec.Priority(first.Pod) < podspec.Priority(a.Desired.Pod)
		if !known && !preempted && a.check(first, nil, all) == nil {
			all = append(all, admission.TakenBy(first.Pod))
		}
	}
	return all
}

// resized returns the other admitted pods with the waiting resizes that come before that of the pod and fit beside its
// present resources. So the order of resizes does not depend on the order of passes (kubelet: retryPendingResizes).
func (a *admitter) resized(before *v1.Pod, admitted []model.Admitted) []model.Admitted {
	all, own := slices.Clone(admitted), admission.TakenBy(before)
	for i := range a.how.Resizes {
		first := &a.how.Resizes[i]
		is := func(o model.Admitted) bool { return o.Pod.UID == first.Wanted.Pod.UID }
		rest := slices.DeleteFunc(slices.Clone(all), is)
		if slices.ContainsFunc(all, is) && a.check(first.Wanted, first.Before, append(slices.Clone(rest), own)) == nil {
			all = append(rest, admission.TakenBy(first.Wanted.Pod))
		}
	}
	return all
}

// terminatingFor returns a terminating pod if this pod fits once all terminating pods are gone; otherwise nil.
func (a *admitter) terminatingFor(before *v1.Pod, others []model.Admitted) *model.PodRef {
	if a.how == nil {
		return nil
	}
	i := slices.IndexFunc(others, a.goes)
	if i < 0 || a.check(a.Desired, before, slices.DeleteFunc(slices.Clone(others), a.goes)) != nil {
		return nil
	}
	return &others[i].Pod
}

// goes reports whether another pod is terminating.
func (a *admitter) goes(o model.Admitted) bool {
	return o.Terminating || slices.Contains(a.how.Terminating, o.Pod.UID)
}

// holdUntilGone holds the pod until another pod is gone.
func holdUntilGone(terminating *model.PodRef, found *model.Rejection) *Hold {
	return &Hold{
		Reason:    found.Reason,
		Message:   fmt.Sprintf("%s; podctl tries again when pod %s is gone", found.Message, terminating),
		Status:    found.Message,
		Admission: true,
		Unapplied: true,
	}
}

// preemptAgain is how long after a pass a critical pod checks whether the pods that it preempts have ended. Usually the
// end of a pod requests the next pass.
const preemptAgain = time.Second

// holdUntilPreempted holds a critical pod until the pods that it preempts have ended.
func holdUntilPreempted(p *model.Preemption, found *model.Rejection) *Hold {
	var names []string
	for _, pod := range p.Pods {
		names = append(names, pod.String())
	}
	return &Hold{
		Reason:    found.Reason,
		Message:   fmt.Sprintf("%s; it preempts %s", found.Message, strings.Join(names, ", ")),
		Status:    found.Message,
		Preempts:  p,
		Admission: true,
		Unapplied: true,
		Recheck:   preemptAgain,
	}
}
