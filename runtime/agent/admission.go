package agent

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// admitter decides about admission for passes, and records the pods that were not admitted.
type admitter struct {
	*loopState

	// refused holds the pods that do not match their manifests, with the reason that was logged.
	refused map[types.UID]refusal
	// recheck holds the rejected pods that get another admission check.
	recheck map[types.UID]bool
	// changes counts the events that may have freed resources. changesAt is the count at the start of each pod's last
	// pass.
	changes   int
	changesAt map[types.UID]int
	// resizes holds the pods whose resize waits, and since when.
	resizes map[types.UID]time.Time
	// preempt ends pods for a critical pod.
	preempt func(now time.Time, p *model.Preemption)
}

// refusal is the reason why a pod, or an edit of a pod, is not admitted.
type refusal struct {
	reason model.Reason
	// rejected reports whether the whole pod is rejected, not only an edit.
	rejected bool
}

func newAdmitter(s *loopState, preempt func(time.Time, *model.Preemption)) *admitter {
	return &admitter{
		loopState: s,
		refused:   map[types.UID]refusal{},
		recheck:   map[types.UID]bool{},
		changesAt: map[types.UID]int{},
		resizes:   map[types.UID]time.Time{},
		preempt:   preempt,
	}
}

// optionsFor returns the admission settings for the pass of a pod that begins now.
func (a *admitter) optionsFor(uid types.UID) *plan.Admission {
	if a.settings.Admission == nil {
		return nil
	}
	a.changesAt[uid] = a.changes
	how := &plan.Admission{
		Settings:    *a.settings.Admission,
		Final:       !a.recheck[uid],
		First:       a.earlierPods(uid),
		Resizes:     a.earlierResizes(uid),
		Terminating: a.reconciler.terminating(),
		Conditions:  a.NodeFacts().Pressures,
		Preempts:    true,
	}
	if a.settings.Node != nil {
		how.Node = a.settings.Node()
	}
	return how
}

// earlierPods returns the pods that come before a pod and are not admitted yet: first the critical pods that wait for
// the end of others, then the pods in the order of sources and names.
func (a *admitter) earlierPods(uid types.UID) []*podspec.Desired {
	if !a.isUndecided(uid) {
		return nil
	}
	critical := a.waitingCritical(uid)
	pods := slices.Clone(critical)
	for _, source := range a.reconciler.ledger.Order {
		for _, d := range a.reconciler.ledger.Updates[source].Pods {
			switch {
			case d.Pod.UID == uid && a.reconciler.kept[uid] == d:
				return pods
			case a.reconciler.kept[d.Pod.UID] == d && a.isUndecided(d.Pod.UID):
				pods = append(pods, d)
			}
		}
	}
	// The pod was applied by hand, so no pod of a source comes before it.
	return critical
}

// earlierResizes returns the waiting resizes of other pods that are admitted before one of this pod.
func (a *admitter) earlierResizes(uid types.UID) (earlier []plan.Resize) {
	own := a.reconciler.kept[uid]
	if own == nil {
		return nil
	}
	of := func(uid types.UID, pod *podspec.Desired) *admission.WaitingResize {
		return &admission.WaitingResize{Pod: pod.Pod, Since: a.resizes[uid]}
	}
	for other := range a.resizes {
		wanted, applied := a.reconciler.kept[other], a.reconciler.stored[other].Desired
		if other != uid && wanted != nil && applied != nil &&
			admission.CompareResizes(of(other, wanted), of(uid, own)) < 0 {
			earlier = append(earlier, plan.Resize{Wanted: wanted, Before: applied.Pod})
		}
	}
	slices.SortFunc(earlier, func(x, y plan.Resize) int {
		return admission.CompareResizes(of(x.Wanted.Pod.UID, x.Wanted), of(y.Wanted.Pod.UID, y.Wanted))
	})
	return earlier
}

// noteResize notes whether a resize of a pod waits.
func (a *admitter) noteResize(now time.Time, uid types.UID, p *plan.Plan) {
	waits := slices.ContainsFunc(p.Holds, func(h plan.Hold) bool { return h.Resize != nil })
	if _, known := a.resizes[uid]; waits && !known {
		a.resizes[uid] = now
	} else if !waits {
		delete(a.resizes, uid)
	}
}

// waitingCritical returns the critical pods that wait for the end of others. They come before each pod that is not
// critical, so that it does not take the resources that become free.
func (a *admitter) waitingCritical(uid types.UID) (pods []*podspec.Desired) {
	if podspec.IsCritical(a.reconciler.kept[uid].Pod) {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(a.refused)) {
		wanted := a.reconciler.kept[other]
		if wanted != nil && !a.refused[other].rejected && podspec.IsCritical(wanted.Pod) {
			pods = append(pods, wanted)
		}
	}
	return pods
}

// isUndecided reports whether the admission of a pod is still undecided. The rejection of a pod of the API server is
// final.
func (a *admitter) isUndecided(uid types.UID) bool {
	s, known := a.reconciler.stored[uid]
	wanted := a.reconciler.kept[uid]
	if wanted == nil {
		return false
	}
	if wanted.FromCluster() && known && s.Rejection != nil {
		return false
	}
	outdated := s.Rejection != nil && s.Rejection.Settings != a.settings.Admission.String()
	return !known || outdated || a.recheck[uid] || !s.Desired.SameManifest(wanted)
}

// handlePass records and logs the admission result of a pass. If resources may have been freed during the pass, a pod
// that waits for them gets another pass.
func (a *admitter) handlePass(now time.Time, p *passResult) {
	uid := p.pass.Ref.UID
	if p.planned() == nil {
		return
	}
	delete(a.recheck, uid)
	a.noteResize(now, uid, p.planned())
	before, was := a.refused[uid]
	delete(a.refused, uid)
	i := slices.IndexFunc(p.outcome.Plan.Holds, func(h plan.Hold) bool { return h.Admission })
	if i < 0 {
		return
	}
	h := &p.outcome.Plan.Holds[i]
	why := refusal{h.Reason, p.outcome.Plan.Rejection != nil}
	a.refused[uid] = why
	if h.Preempts != nil {
		a.preempt(now, h.Preempts)
	}
	if !why.rejected && a.changesAt[uid] != a.changes {
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

// rejects reports whether a pass has rejected a pod that was not rejected before.
func (p *passResult) rejects() bool {
	return p.outcome.Input == nil || p.outcome.Input.Observed.Memory.Rejection != p.outcome.Plan.Rejection
}

// handleEnd forgets a pod that is gone and wakes the pods that wait for its resources.
func (a *admitter) handleEnd(now time.Time, uid types.UID) {
	delete(a.refused, uid)
	delete(a.recheck, uid)
	delete(a.changesAt, uid)
	delete(a.resizes, uid)
	a.wakeWaiting(now)
}

// wakeWaiting starts passes for the pods that wait for resources of others. Rejected pods stay rejected.
func (a *admitter) wakeWaiting(now time.Time) {
	a.changes++
	for other, r := range a.refused {
		if !r.rejected {
			a.workers.Wake(now, other)
		}
	}
}

// recheckRejected checks the admission of every rejected pod again.
func (a *admitter) recheckRejected(now time.Time) {
	for uid, r := range a.refused {
		if r.rejected {
			a.recheck[uid] = true
			a.workers.Wake(now, uid)
		}
	}
}

// terminating returns the pods that are known to exist and are no longer wanted.
func (r *reconciler) terminating() []types.UID {
	var uids []types.UID
	for uid, s := range r.stored {
		if s.Deleting || r.kept[uid] == nil && r.ledger.Owns(s.Desired.Owner) {
			uids = append(uids, uid)
		}
	}
	for uid := range r.leaving {
		// The pod may have no checkpoint yet: its first pass is being cut short.
		if r.workers.Ending(uid) {
			uids = append(uids, uid)
		}
	}
	for _, u := range r.ledger.Updates {
		uids = append(uids, u.Missing...)
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}
