package agent

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// admitting knows what a pass has to know to admit a pod, and which pods were not admitted.
type admitting struct {
	*loopState

	// settings are those of every pod; nil admits all.
	settings *admission.Settings
	// refused are the pods that are not as their manifests say, with the reason that was written.
	refused map[types.UID]refusal
	// again are the rejected pods that are asked to be admitted once more.
	again map[types.UID]bool
	// changes is how often room may have appeared; looked is that number when the last pass of a pod began.
	changes int
	looked  map[types.UID]int
}

// refusal is why a pod, or an edit of it, is not admitted.
type refusal struct {
	reason model.Reason
	// rejected reports whether the pod as a whole is.
	rejected bool
}

func newAdmitting(s *loopState) *admitting {
	return &admitting{
		loopState: s, settings: s.settings.Admission, refused: map[types.UID]refusal{}, again: map[types.UID]bool{}, looked: map[types.UID]int{},
	}
}

// of is how a pod is admitted in the pass that begins now.
func (a *admitting) of(uid types.UID, conditions []v1.NodeConditionType) *plan.Admission {
	if a.settings == nil {
		return nil
	}
	a.looked[uid] = a.changes
	return &plan.Admission{Settings: *a.settings, Final: !a.again[uid], First: a.before(uid), Going: a.keeper.going(), Conditions: conditions}
}

// before are the pods that come before one and are not admitted yet, in the order of the sources and
// of names.
func (a *admitting) before(uid types.UID) []*v1.Pod {
	if !a.isOpen(uid) {
		return nil
	}
	var pods []*v1.Pod
	for _, source := range a.keeper.ledger.Order {
		for _, d := range a.keeper.ledger.Updates[source].Pods {
			switch {
			case d.Pod.UID == uid && a.keeper.kept[uid] == d:
				return pods
			case a.keeper.kept[d.Pod.UID] == d && a.isOpen(d.Pod.UID):
				pods = append(pods, d.Pod)
			}
		}
	}
	// It was applied by hand: nothing comes before it.
	return nil
}

// isOpen reports whether it is not decided yet whether a pod is admitted.
func (a *admitting) isOpen(uid types.UID) bool {
	s, known := a.keeper.stored[uid]
	wanted := a.keeper.kept[uid]
	if wanted == nil {
		return false
	}
	anew := s.Rejection != nil && s.Rejection.Settings != a.settings.String()
	return !known || anew || a.again[uid] || !s.Desired.SameManifest(wanted)
}

// passed takes note of what a pass came to, and writes what is new of it. A pod that waits for room that
// may have appeared during its pass has another.
func (a *admitting) passed(now time.Time, p *passed) {
	uid := p.pass.Ref.UID
	if p.planned() == nil {
		return
	}
	delete(a.again, uid)
	before, was := a.refused[uid]
	delete(a.refused, uid)
	i := slices.IndexFunc(p.outcome.Plan.Holds, func(h plan.Hold) bool { return h.Admission })
	if i < 0 {
		return
	}
	h := &p.outcome.Plan.Holds[i]
	why := refusal{h.Reason, p.outcome.Plan.Rejection != nil}
	a.refused[uid] = why
	if !why.rejected && a.looked[uid] != a.changes {
		a.workers.Wake(now, uid)
	}
	switch {
	case why.rejected && !p.rejects(), was && before == why:
		return
	case why.rejected:
		a.metrics.Rejected(string(h.Reason))
		a.log.Warn("pod rejected", "pod", p.pass.Ref.String(), "reason", string(h.Reason), "message", h.Status)
	default:
		a.log.Warn("not admitted", "pod", p.pass.Ref.String(), "reason", string(h.Reason), "message", h.Message)
	}
}

// rejects reports whether a pass has rejected a pod that was not before.
func (p *passed) rejects() bool {
	return p.outcome.Input == nil || p.outcome.Input.Observed.Memory.Rejection != p.outcome.Plan.Rejection
}

// ended takes note of a pod that is gone.
func (a *admitting) ended(now time.Time, uid types.UID) {
	delete(a.refused, uid)
	delete(a.again, uid)
	delete(a.looked, uid)
	a.wake(now)
}

// wake lets pods try again that wait for what others have. Those that were rejected stay so.
func (a *admitting) wake(now time.Time) {
	a.changes++
	for other, r := range a.refused {
		if !r.rejected {
			a.workers.Wake(now, other)
		}
	}
}

// askAgain lets every rejected pod be admitted that fits by now.
func (a *admitting) askAgain(now time.Time) {
	for uid, r := range a.refused {
		if r.rejected {
			a.again[uid] = true
			a.workers.Wake(now, uid)
		}
	}
}

// going are the pods that nobody wants any more, as far as that is known, and that are still there.
func (k *keeper) going() []types.UID {
	var uids []types.UID
	for uid, s := range k.stored {
		if s.Deleting || k.kept[uid] == nil && k.isOwn(s.Desired.Keeper) {
			uids = append(uids, uid)
		}
	}
	for uid := range k.leaving {
		// It may have no checkpoint yet: its first pass is being cut short.
		if k.workers.Ending(uid) {
			uids = append(uids, uid)
		}
	}
	for _, u := range k.ledger.Updates {
		uids = append(uids, u.Missing...)
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}
