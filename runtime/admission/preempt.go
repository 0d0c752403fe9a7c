package admission

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Preempt returns which of the other pods must end, so that a critical pod has enough resources. If another check fails
// too, or if no set of pods suffices, it returns why the pod is rejected (kubelet:
// CriticalPodAdmissionHandler.HandleAdmissionFailure).
func Preempt(r *Request) (*model.Preemption, *model.Rejection) {
	if found := r.first(slices.Concat(r.beforeResources(), r.afterResources())); found != nil {
		return nil, found
	}
	lacks := r.shortages()
	if len(lacks) == 0 {
		return nil, nil // The pod fits.
	}
	var all needs
	for _, s := range lacks {
		all = append(all, need{s.name, s.missing()})
	}
	victims, left := all.victims(podspec.Priority(r.Pod), r.Others)
	if len(left) > 0 {
		return nil, &model.Rejection{Reason: model.UnexpectedAdmissionError, Message: unrecoverable + left.String()}
	}
	p := &model.Preemption{Resource: lacks[0].name}
	for i := range victims {
		p.Pods = append(p.Pods, victims[i].Pod)
	}
	return p, nil
}

// unrecoverable is the kubelet's message if no set of pods suffices, without the needs.
const unrecoverable = "Unexpected error while attempting to recover from admission failure: preemption: " +
	"error finding a set of pods to preempt: no set of running pods found to reclaim resources: "

// need is the amount of a resource that must become free (kubelet: admissionRequirement).
type need struct {
	resource v1.ResourceName
	amount   int64
}

type needs []need

// String returns the needs as in the kubelet's messages (kubelet: admissionRequirementList.toString).
func (n needs) String() string {
	var b strings.Builder
	for _, one := range n {
		fmt.Fprintf(&b, "(res: %v, q: %d), ", one.resource, one.amount)
	}
	return "[" + b.String() + "]"
}

// freedBy returns the amount of a resource that the end of a pod frees (kubelet: GetResourceRequest).
func freedBy(pod *model.Admitted, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return amount(name, pod.Requests)
}

// after returns what is still needed once the pods have ended (kubelet: admissionRequirementList.subtract).
func (n needs) after(pods []model.Admitted) needs {
	var left needs
	for _, one := range n {
		for i := range pods {
			one.amount -= freedBy(&pods[i], one.resource)
		}
		if one.amount > 0 {
			left = append(left, one)
		}
	}
	return left
}

// distance returns how much is missing once a pod has ended. Each resource counts as a share of what is needed of it
// (kubelet: admissionRequirementList.distance).
func (n needs) distance(pod *model.Admitted) float64 {
	sum := 0.0
	for _, one := range n {
		if left := one.amount - freedBy(pod, one.resource); left > 0 {
			sum += math.Pow(float64(left)/float64(one.amount), 2)
		}
	}
	return sum
}

// victims returns pods of a lower priority whose end satisfies the needs, or what all of these pods leave unsatisfied.
// The pods of a QoS class end only as far as all pods of the lower classes do not suffice (kubelet: getPodsToPreempt,
// sortPodsByQOS).
func (n needs) victims(priority int32, pods []model.Admitted) (victims []model.Admitted, left needs) {
	class := func(c v1.PodQOSClass) []model.Admitted {
		return slices.DeleteFunc(slices.Clone(pods), func(p model.Admitted) bool {
			return p.QOSClass != c || p.Priority >= priority
		})
	}
	bestEffort, burstable := class(v1.PodQOSBestEffort), class(v1.PodQOSBurstable)
	guaranteed := class(v1.PodQOSGuaranteed)
	if left = n.after(slices.Concat(bestEffort, burstable, guaranteed)); len(left) > 0 {
		return nil, left
	}
	fromGuaranteed := n.after(slices.Concat(bestEffort, burstable)).nearest(guaranteed)
	fromBurstable := n.after(slices.Concat(bestEffort, fromGuaranteed)).nearest(burstable)
	fromBestEffort := n.after(slices.Concat(fromBurstable, fromGuaranteed)).nearest(bestEffort)
	return slices.Concat(fromBestEffort, fromBurstable, fromGuaranteed), nil
}

// nearest chooses pods until their end satisfies the needs. It chooses one after the other, each time the pod that
// leaves the least to free, and the smallest of equal ones (kubelet: getPodsToPreemptByDistance).
func (n needs) nearest(pods []model.Admitted) (chosen []model.Admitted) {
	rest := slices.Clone(pods)
	for len(n) > 0 && len(rest) > 0 {
		best := 0
		for i := range rest {
			if cmp.Or(cmp.Compare(n.distance(&rest[i]), n.distance(&rest[best])), bySize(&rest[i], &rest[best])) < 0 {
				best = i
			}
		}
		chosen = append(chosen, rest[best])
		n, rest = n.after(rest[best:best+1]), slices.Delete(rest, best, best+1)
	}
	return chosen
}

// bySize compares the requests of two pods (kubelet: smallerResourceRequest).
func bySize(a, b *model.Admitted) int {
	return cmp.Or(
		cmp.Compare(freedBy(a, v1.ResourceMemory), freedBy(b, v1.ResourceMemory)),
		cmp.Compare(freedBy(a, v1.ResourceCPU), freedBy(b, v1.ResourceCPU)),
	)
}
