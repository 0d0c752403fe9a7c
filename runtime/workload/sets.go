package workload

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// statefulSet creates, updates and deletes pods in the order of their ordinals (updateStatefulSet of the controller).
func (x *expanding) statefulSet(set *appsv1.StatefulSet) {
	x.desired = int(ptr.Deref(set.Spec.Replicas, 1))
	first := 0
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	x.ordered = set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	if settled := x.makeInOrder(first); x.ordered && !settled {
		x.keepOutside(first, "It is deleted once all pods before it are available.")
		x.waitForUpdates(set, first, "It is updated once all pods are available.")
		return
	}
	if settled := x.deleteInOrder(first); x.ordered && !settled {
		x.waitForUpdates(set, first, "It is updated once the surplus pods are gone.")
		return
	}
	x.updateInOrder(set, first)
}

// makeInOrder creates missing pods. If the set is ordered, a pod waits until all before it are available. It reports
// whether all exist and are available.
func (x *expanding) makeInOrder(first int) (settled bool) {
	settled = true
	for ordinal := first; ordinal < first+x.desired; ordinal++ {
		t := x.there[ordinal]
		switch {
		case t != nil:
			x.wanted[ordinal] = t.Applied
			// A pod that does not become ready gets the newest version, which may fix it.
			if !t.available && !t.updated && !t.ready && !t.isUnknown() {
				x.make(ordinal)
			}
		case x.ordered && !settled:
			x.out.wait(x.maker.name(ordinal), "It is created once all pods before it are available.")
		default:
			x.make(ordinal)
		}
		settled = settled && t != nil && t.available
	}
	return settled
}

// outside returns the ordinals outside of the range of count ordinals from first.
func outside(ordinals []int, first, count int) []int {
	return slices.DeleteFunc(ordinals, func(ordinal int) bool { return ordinal >= first && ordinal < first+count })
}

func (x *expanding) keepOutside(first int, why string) {
	for _, ordinal := range outside(x.ordinals(), first, x.desired) {
		x.keep(x.there[ordinal], why)
	}
}

// deleteInOrder deletes superfluous pods; if the set is ordered, only the last one. It reports whether there were none.
func (x *expanding) deleteInOrder(first int) (settled bool) {
	left := outside(x.ordinals(), first, x.desired)
	for i, ordinal := range slices.Backward(left) {
		if t := x.there[ordinal]; x.ordered && i < len(left)-1 {
			x.keep(t, "It is deleted once all pods after it are gone.")
		} else {
			x.out.gone(t.Applied)
		}
	}
	return len(left) == 0
}

// updateInOrder updates pods from the last one down to the partition, one after the other, or as many at once as may be
// unavailable.
func (x *expanding) updateInOrder(set *appsv1.StatefulSet, first int) {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		x.onDelete(first, "It is updated when it is deleted (updateStrategy OnDelete).")
		return
	}
	partition, unavailable := 0, 1
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = int(ptr.Deref(rolling.Partition, 0))
		_, unavailable = fenceposts(&appsv1.RollingUpdateDeployment{MaxUnavailable: rolling.MaxUnavailable}, x.desired)
	}
	spare := unavailable
	for ordinal := first + x.desired - 1; ordinal >= first; ordinal-- {
		if t := x.there[ordinal]; t == nil || !t.available {
			spare--
		}
	}
	for ordinal := first + x.desired - 1; ordinal >= first; ordinal-- {
		switch t := x.there[ordinal]; {
		case t == nil, t.updated:
		case ordinal < partition:
			x.keepOld(t, fmt.Sprintf("Its ordinal is below the partition %d.", partition))
		case t.isUnknown():
			x.keepUnknown(t)
		case !t.available:
			x.make(ordinal)
		case spare > 0:
			spare--
			x.make(ordinal)
		default:
			x.keep(t, "It is updated once the pods after it are available.")
		}
	}
}

// waitForUpdates records why pods are not updated yet.
func (x *expanding) waitForUpdates(set *appsv1.StatefulSet, first int, why string) {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return
	}
	partition := 0
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = int(ptr.Deref(rolling.Partition, 0))
	}
	for ordinal := max(first, partition); ordinal < first+x.desired; ordinal++ {
		if t := x.there[ordinal]; t != nil && !t.newest && x.wanted[ordinal] == t.Applied {
			x.out.wait(t.Applied.Pod.Name, why)
		}
	}
}

// onDelete keeps old pods as they are.
func (x *expanding) onDelete(first int, why string) {
	for ordinal := first; ordinal < first+x.desired; ordinal++ {
		if t := x.there[ordinal]; t != nil && !t.updated {
			x.keepOld(t, why)
		}
	}
}

// daemonSet has one pod, if it may run on this machine.
func (x *expanding) daemonSet(set *appsv1.DaemonSet) {
	if x.in.Unfit != nil {
		x.out.Unfit = x.in.Unfit(x.maker.pod(0).Pod)
	}
	if x.out.Unfit != "" {
		x.deleteFrom(0)
		return
	}
	x.desired = 1
	if t := x.there[0]; t != nil && !t.updated && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		x.keepOld(t, "It is updated when it is deleted (updateStrategy OnDelete).")
	} else {
		x.make(0)
	}
	x.deleteFrom(1)
}
