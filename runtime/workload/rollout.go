package workload

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// scale creates missing pods and deletes superfluous ones. Existing pods stay as they are. why is the reason for those
// with an old version.
func (x *expanding) scale(why string) {
	for ordinal := range x.desired {
		switch t := x.there[ordinal]; {
		case t == nil:
			x.make(ordinal)
		case t.updated:
			x.keep(t, "")
		default:
			x.keep(t, why)
		}
	}
	x.deleteFrom(x.desired)
}

// deleteFrom deletes the pods with ordinals from from on.
func (x *expanding) deleteFrom(from int) {
	for _, ordinal := range x.ordinals() {
		if ordinal >= from {
			x.out.gone(x.there[ordinal].Applied)
		}
	}
}

// deployment updates pods according to the strategy.
func (x *expanding) deployment(d *appsv1.Deployment) {
	x.desired = int(ptr.Deref(d.Spec.Replicas, 1))
	switch {
	case d.Spec.Paused:
		x.scale("The Deployment is paused.")
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		x.recreate()
	default:
		x.roll(d.Spec.Strategy.RollingUpdate)
	}
}

// recreate deletes all old pods before it creates a new one.
func (x *expanding) recreate() {
	old := 0
	for _, ordinal := range x.ordinals() {
		if t := x.there[ordinal]; !t.newest || ordinal >= x.desired {
			x.out.gone(t.Applied)
			if !t.newest {
				old++
			}
		}
	}
	for ordinal := range x.desired {
		switch t := x.there[ordinal]; {
		case t != nil && t.newest:
			x.make(ordinal)
		case old == 0:
			x.make(ordinal)
		default:
			text := fmt.Sprintf("The strategy Recreate creates it once %s.", oldPodsGone(old))
			x.out.wait(x.maker.name(ordinal), text)
		}
	}
}

func oldPodsGone(old int) string {
	if old == 1 {
		return "the old pod is gone"
	}
	return fmt.Sprintf("the %d old pods are gone", old)
}

// roll updates as many pods at once as may be unavailable, with the pods of maxSurge in addition. A pod whose old
// containers are being stopped counts as gone, like a terminating pod in a cluster. Another one may be created in its
// place meanwhile, so that updates do not wait for each other's grace periods. There is at most one additional pod for
// each that is updated, and none without maxSurge.
func (x *expanding) roll(strategy *appsv1.RollingUpdateDeployment) {
	surge, unavailable := fenceposts(strategy, x.desired)
	// spare is how many available pods may become unavailable now.
	spare := available(x.there) - (x.desired - unavailable)
	base := x.rollBase(x.desired-unavailable, &spare)
	if surge > 0 {
		surge += base.going
	}
	x.rollSurge(min(surge, base.old+base.going), base, &spare)
}

// rolling counts the pods of an update that stay: old ones, those being stopped for the update, and those starting
// again.
type rolling struct{ old, going, starting int }

// MinimumAvailable returns how many pods of a Deployment have to be available for it to count as available
// (DeploymentAvailable of the Deployment controller).
func MinimumAvailable(d *appsv1.Deployment) int {
	desired := int(ptr.Deref(d.Spec.Replicas, 1))
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return desired
	}
	_, unavailable := fenceposts(d.Spec.Strategy.RollingUpdate, desired)
	return max(desired-unavailable, 0)
}

// fenceposts returns how many pods there may be above and below the desired number (ResolveFenceposts of the Deployment
// controller).
func fenceposts(strategy *appsv1.RollingUpdateDeployment, desired int) (surge, unavailable int) {
	if strategy == nil {
		return 0, 1
	}
	zero := intstr.FromInt32(0)
	// Validation has refused values that are no number and no percentage.
	surge, _ = intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(strategy.MaxSurge, zero), desired, true)
	maxUnavailable := intstr.ValueOrDefault(strategy.MaxUnavailable, zero)
	unavailable, _ = intstr.GetScaledValueFromIntOrPercent(maxUnavailable, desired, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// isGoing reports whether a pod is being stopped for the newest version.
func (t *there) isGoing() bool { return t.newest && t.Stopping && !t.isUnknown() }

// available counts the pods that are available and not being stopped.
func available(all map[int]*there) (count int) {
	for _, t := range all {
		if t.available && !t.isGoing() {
			count++
		}
	}
	return count
}

// begunPause is the time after which a Deployment that has begun to update a pod is expanded again.
const begunPause = time.Second

// rollBase updates the pods that stay. Pods that are unavailable anyway come first (cleanupUnhealthyReplicas of the
// controller). At least floor pods stay available.
func (x *expanding) rollBase(floor int, spare *int) (counts rolling) {
	for ordinal := range x.desired {
		switch t := x.there[ordinal]; {
		case t.isUnknown():
			x.keepUnknown(t)
			if !t.newest {
				counts.old++
			}
		case t != nil && t.isGoing():
			counts.going++
			x.make(ordinal)
		case t == nil, t.updated, !t.available:
			if t == nil || !t.available {
				counts.starting++
			}
			x.make(ordinal)
		case *spare > 0:
			*spare--
			counts.old++
			x.make(ordinal)
			x.out.next(x.in.Now.Add(begunPause))
		default:
			counts.old++
			x.keep(t, fmt.Sprintf("%d pods must stay available; it is updated once one more is available.", floor))
		}
	}
	return counts
}

// rollSurge creates the additional pods of an update, and deletes those that are no longer needed. While pods are being
// stopped, it creates at most as many as there are old pods to update next.
func (x *expanding) rollSurge(surge int, base rolling, spare *int) {
	coming := base.starting
	for ordinal := x.desired; ordinal < x.desired+surge; ordinal++ {
		switch t := x.there[ordinal]; {
		case t != nil && t.available:
			x.make(ordinal)
		case t != nil || base.going == 0 || coming < base.old:
			coming++
			x.make(ordinal)
		}
	}
	for _, ordinal := range x.ordinals() {
		t := x.there[ordinal]
		switch {
		case ordinal < x.desired+surge:
		case t.isUnknown() && *spare < 0:
			x.keep(t, "It is deleted once the updated pods are available.")
		case !t.available, *spare > 0:
			if t.available {
				*spare--
			}
			x.out.gone(t.Applied)
		default:
			x.keep(t, "It is deleted once the updated pods are available.")
		}
	}
}
