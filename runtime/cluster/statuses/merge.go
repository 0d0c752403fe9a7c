package statuses

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Merge is the input of one merge. Nothing in it is changed.
type Merge struct {
	// API is the newest known copy of the pod in the API.
	API *v1.Pod
	// Own is the status that podctl shows for the pod.
	Own v1.PodStatus
	// Generation is metadata.generation of the version that the last pass applied.
	Generation int64
	// MayRun reports that a container of the pod may run, even if Own shows none (kubelet:
	// PodCouldHaveRunningContainers).
	MayRun bool
	// Before is the result of the last merge, which the API may not have yet; nil if there is none.
	Before *v1.PodStatus
	Now    time.Time
}

// errUnobserved reports that the status of a pod could not be determined. Such a status is never sent.
var errUnobserved = errors.New("the pod could not be observed")

// Status returns the status that the API must have (kubelet: updateStatusInternal, mergePodStatus). A status without a
// phase, or with the phase Unknown, is an error: podctl could not observe the pod.
func (m *Merge) Status() (v1.PodStatus, error) {
	if m.Own.Phase == "" || m.Own.Phase == v1.PodUnknown {
		return v1.PodStatus{}, errUnobserved
	}
	s := m.Own.DeepCopy()
	normalize(m.API, s)
	m.keepFields(s)
	m.mergeContainers(s)
	ends := m.mergePhase(s)
	s.ObservedGeneration = m.generation(m.API.Status.ObservedGeneration)
	m.mergeConditions(s, ends)
	return *s, nil
}

// keepFields keeps fields that podctl does not own, and those that never change or that it does not know any more.
func (m *Merge) keepFields(s *v1.PodStatus) {
	old := m.API.Status.DeepCopy()
	s.ResourceClaimStatuses = old.ResourceClaimStatuses
	s.ExtendedResourceClaimStatus = old.ExtendedResourceClaimStatus
	s.NodeAllocatableResourceClaimStatuses = old.NodeAllocatableResourceClaimStatuses
	s.NominatedNodeName = old.NominatedNodeName
	if old.QOSClass != "" {
		// The API server refuses a change (ValidatePodStatusUpdate).
		s.QOSClass = old.QOSClass
	}
	switch {
	case !old.StartTime.IsZero():
		s.StartTime = old.StartTime
	case s.StartTime.IsZero():
		s.StartTime = &metav1.Time{Time: m.Now.Truncate(time.Second)}
	}
	if s.HostIP == "" {
		s.HostIP, s.HostIPs = old.HostIP, old.HostIPs
	}
	if s.PodIP == "" && (m.API.DeletionTimestamp != nil || model.IsOver(s)) {
		// The sandbox of a pod that ends is gone before the pod is (kubelet: GenericPLEG.getPodIPs).
		s.PodIP, s.PodIPs = old.PodIP, old.PodIPs
	}
}

// generation returns the observed generation. It never goes back, and is 0 for a mirror pod, because the pod behind it
// has no generation.
func (m *Merge) generation(before int64) int64 {
	if podspec.IsMirror(m.API) {
		return before
	}
	return max(m.applied(), before)
}

// applied returns the generation that the last pass applied, but none after that of the object. The API server can have
// lost newer generations, because it was restored from a backup.
func (m *Merge) applied() int64 {
	if m.API.Generation == 0 {
		return m.Generation
	}
	return min(m.Generation, m.API.Generation)
}
