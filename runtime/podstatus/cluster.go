package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Cluster is the state of a pod in the API of a cluster, as far as the status depends on it.
type Cluster struct {
	// Generation is metadata.generation of the version that the last pass applied; 0 for a mirror pod.
	Generation int64
	// Conditions are the conditions of the pod in the API. The readiness gates refer to them. If nil, they are unknown
	// here.
	Conditions []v1.PodCondition
}

// ClusterOf returns the state of a pod of the API server on this machine; nil for another pod.
func ClusterOf(d *podspec.Desired) *Cluster {
	if d == nil || d.Pod == nil || !d.FromCluster() {
		return nil
	}
	return &Cluster{Generation: d.Pod.Generation}
}

// apiConditions returns the conditions of the pod in the API, and whether they are known. A pod of another source has
// none.
func apiConditions(p *Pod) (conditions []v1.PodCondition, known bool) {
	if p.cluster != nil {
		return p.cluster.Conditions, p.cluster.Conditions != nil
	}
	return nil, p.Desired == nil || !p.Desired.FromCluster()
}

// addCluster adds the fields of a status that only a cluster needs: the conditions of a resize, and the observed
// generations.
func addCluster(p *Pod, s *v1.PodStatus) {
	if p.cluster == nil {
		return
	}
	s.Conditions = append(resizeConditions(p, s), s.Conditions...)
	s.ObservedGeneration = p.cluster.Generation
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.ObservedGeneration == 0 {
			c.ObservedGeneration = p.cluster.Generation
		}
	}
}

// resizeConditions returns the conditions of a resize that is not complete. A finished pod has none (kubelet:
// determinePodResizeStatus). The reason Infeasible does not occur: a kubelet has it only for static CPU or memory
// managers, swap and disabled features.
func resizeConditions(p *Pod, s *v1.PodStatus) []v1.PodCondition {
	if model.IsOver(s) {
		return nil
	}
	var conditions []v1.PodCondition
	if w := p.Observed.Memory.PendingResize; w != nil {
		c := trueCondition(v1.PodResizePending)
		c.Reason, c.Message, c.ObservedGeneration = v1.PodReasonDeferred, w.Message, w.Generation
		conditions = append(conditions, c)
	}
	if Resizing(p) {
		c := trueCondition(v1.PodResizeInProgress)
		if r := p.Observed.Memory.Resizing; r != nil {
			c.ObservedGeneration = r.Generation
			if r.Error != "" {
				c.Reason, c.Message = v1.PodReasonError, r.Error
			}
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// Resizing reports whether a running container, or the pod, does not have the applied cpu and memory yet (kubelet:
// IsPodResizeInProgress).
func Resizing(p *Pod) bool {
	actuated := p.Observed.Memory.Actuated
	if actuated == nil || p.Active == "" {
		return false
	}
	if own := p.Manifest.Spec.Resources; own != nil && actuated.Pod != nil &&
		(differ(own.Requests, actuated.Pod.Requests) || differ(own.Limits, actuated.Pod.Limits)) {
		return true
	}
	return slices.ContainsFunc(Lasting(p.Manifest), func(ref podspec.ContainerRef) bool {
		c := p.Current(ref.Name)
		given, known := actuated.Containers[ref.Name]
		if c == nil || c.State != model.Running || !known {
			return false
		}
		return differ(given.Requests, ref.Resources.Requests) || differ(given.Limits, ref.Resources.Limits)
	})
}

// differ reports whether two lists differ in cpu or memory.
func differ(a, b v1.ResourceList) bool {
	return a.Cpu().Cmp(*b.Cpu()) != 0 || a.Memory().Cmp(*b.Memory()) != 0
}
