package podstatus

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Of returns the status that a kubelet would report for a pod: phase, conditions, container states and addresses.
func Of(p *Pod) v1.PodStatus {
	if rejection := p.Observed.Memory.Rejection; rejection != nil {
		s := rejected(p, rejection)
		addCluster(p, &s)
		return s
	}
	r := &reporter{p}
	s := v1.PodStatus{Phase: p.Phase, QOSClass: podspec.QOSClass(p.Manifest)}
	if r.runsAgain() {
		s.Phase = v1.PodRunning
	}
	if p.DeadlineExceeded() && p.Phase != v1.PodSucceeded {
		s.Phase, s.Reason = v1.PodFailed, string(model.DeadlineExceeded)
		s.Message = "Pod was active on the node longer than the specified deadline"
	}
	if started := p.StartTime(); !started.IsZero() {
		s.StartTime = &metav1.Time{Time: started.Truncate(time.Second)}
	}
	r.addIPs(&s)
	s.InitContainerStatuses = r.list(podspec.InitContainers(p.Manifest))
	s.ContainerStatuses = byName(r.list(podspec.RegularContainers(p.Manifest)))
	s.EphemeralContainerStatuses = byName(r.list(podspec.EphemeralContainers(p.Manifest)))
	addUnknownEnds(p, &s)
	truncateMessages(&s, len(podspec.Containers(p.Manifest)))
	r.addPodResources(&s)
	s.Conditions = conditions(p, &s)
	if eviction := p.Observed.Memory.Eviction; eviction != nil {
		addEviction(&s, eviction)
	}
	addCluster(p, &s)
	addTransitions(p, &s)
	return s
}

// addEviction adds the reason of an eviction (kubelet: evictPod, evictPodsToFreeRequests, killPods). A pod that has
// succeeded has none, because the reason belongs to the phase Failed (kubelet: generateAPIPodStatus). A pod that
// exceeded its own limit has no condition, because a replacement would do the same (kubelet: localStorageEviction).
func addEviction(s *v1.PodStatus, why *model.Eviction) {
	if s.Phase == v1.PodFailed {
		s.Reason, s.Message = string(why.Reason()), why.Message
	}
	if !why.OwnLimit {
		disrupted := trueCondition(v1.DisruptionTarget)
		disrupted.Reason, disrupted.Message = v1.PodReasonTerminationByKubelet, why.Message
		if why.Preempted {
			disrupted.Message = "Pod was preempted by Kubelet to accommodate a critical pod."
		}
		s.Conditions = append(s.Conditions, disrupted)
	}
}

// rejected returns the status of a pod that was not admitted (kubelet: rejectPod).
func rejected(p *Pod, why *model.Rejection) v1.PodStatus {
	s := v1.PodStatus{
		Phase:    v1.PodFailed,
		Reason:   string(why.Reason),
		Message:  why.StatusMessage(),
		QOSClass: podspec.QOSClass(p.Manifest),
	}
	if started := p.StartTime(); !started.IsZero() {
		s.StartTime = &metav1.Time{Time: started.Truncate(time.Second)}
	}
	return s
}

func (r *reporter) list(refs []podspec.ContainerRef) []v1.ContainerStatus {
	var statuses []v1.ContainerStatus
	for _, ref := range refs {
		statuses = append(statuses, r.shown(ref))
	}
	return statuses
}

func byName(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	slices.SortStableFunc(statuses, func(a, b v1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
	return statuses
}

func (r *reporter) addIPs(s *v1.PodStatus) {
	for _, ip := range r.Observed.NodeIPs {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip})
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}
	for _, ip := range r.podIPs() {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

// podIPs returns the addresses of the pod. A pod on the node's network has the node's, also before it runs. A pod whose
// sandboxes have all ended keeps its last ones (kubelet: GenericPLEG.getPodIPs).
func (r *reporter) podIPs() []string {
	node := r.Observed.NodeIPs
	if r.Active != "" {
		if ips := r.Sandboxes[0].PodIPs(node); len(ips) > 0 {
			return ips
		}
	}
	if r.Manifest.Spec.HostNetwork {
		return node
	}
	ready := slices.ContainsFunc(r.Sandboxes, func(s model.Sandbox) bool { return s.State == model.SandboxReady })
	if last := r.Observed.Memory.LastRun; last != nil && !ready && len(r.Sandboxes) > 0 {
		return model.SortIPs(last.IPs, node)
	}
	return nil
}

// messagesMax limits the termination messages of a whole pod, in bytes (kubelet:
// kubecontainer.MaxPodTerminationMessageLogLength).
const messagesMax = 12 << 10

func truncateMessages(s *v1.PodStatus, containers int) {
	limit := messagesMax / max(containers, 1)
	for _, list := range model.ContainerStatuses(s) {
		for i := range list {
			truncateMessage(list[i].State.Terminated, limit)
			truncateMessage(list[i].LastTerminationState.Terminated, limit)
		}
	}
}

func truncateMessage(end *v1.ContainerStateTerminated, limit int) {
	if end != nil {
		end.Message = end.Message[:min(len(end.Message), limit)]
	}
}
