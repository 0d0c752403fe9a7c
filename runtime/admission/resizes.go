package admission

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// WaitingResize is a resize that waits. Since is when its wait began; zero for a new one.
type WaitingResize struct {
	Pod   *v1.Pod
	Since time.Time
}

// CompareResizes compares the order in which resizes that wait are admitted: those of a higher priority first, then
// those of Guaranteed pods, then those that have waited longer (kubelet: sortPendingResizes). Resizes that increase no
// request do not wait.
func CompareResizes(a, b *WaitingResize) int {
	return cmp.Or(
		cmp.Compare(podspec.Priority(b.Pod), podspec.Priority(a.Pod)),
		cmp.Compare(classOf(a.Pod), classOf(b.Pod)),
		compareSince(a.Since, b.Since),
		cmp.Compare(a.Pod.UID, b.Pod.UID),
	)
}

// classOf returns 0 for a Guaranteed pod, which comes before others.
func classOf(pod *v1.Pod) int {
	if podspec.QOSClass(pod) == v1.PodQOSGuaranteed {
		return 0
	}
	return 1
}

// compareSince compares times. A resize without one is new, and comes last.
func compareSince(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return a.Compare(b)
	case a.IsZero():
		return 1
	}
	return -1
}
