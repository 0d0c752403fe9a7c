package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/runtime/model"
)

// Request is the input for the admission of a pod.
type Request struct {
	Pod *v1.Pod
	// Before is the pod as it was admitted; nil if it was not. Only the additional demand of an edit is checked.
	Before *v1.Pod
	// Others are the other pods of the node that were admitted and have not ended.
	Others   []model.Admitted
	Machine  *model.Machine
	Settings *Settings
	// Conditions are the pressure conditions of the node.
	Conditions []v1.NodeConditionType
	// Devices is why the pod cannot get devices of device plugins; nil if it can, or if it waits for them.
	Devices *model.DeviceFault
	// Node is the Node in the API; nil if there is none.
	Node *Node
	// FromCluster is set if the API server owns the pod. A field that podctl does not support then rejects it.
	FromCluster bool
}

// Node has the fields of the Node in the API that admission depends on.
type Node struct {
	Labels map[string]string
	Taints []v1.Taint
}

// check is one reason to reject a pod; an empty message means that it does not apply.
type check struct {
	reason model.Reason
	find   func(*v1.Pod) (message string)
}

// Admit returns why a pod is not admitted, in the kubelet's order and words; nil if it is. The first reason counts.
// Unknown facts of the machine are not a reason.
func Admit(r *Request) *model.Rejection {
	if found := r.first(r.beforeResources()); found != nil {
		return found
	}
	if lacks := r.shortages(); len(lacks) > 0 {
		return lacks[0].rejection()
	}
	return r.first(r.afterResources())
}

// first returns the first reason that does not also apply to the pod as it was admitted.
func (r *Request) first(checks []check) *model.Rejection {
	for _, c := range checks {
		message := c.find(r.Pod)
		if message == "" || (r.Before != nil && c.find(r.Before) != "") {
			continue
		}
		return &model.Rejection{Reason: c.reason, Message: message}
	}
	return nil
}

func (r *Request) beforeResources() []check {
	return []check{
		{model.Evicted, r.underPressure},
		{model.SysctlForbidden, r.forbiddenSysctl},
		{model.UnexpectedAdmissionError, r.noDevices},
		{model.PodOSSelectorNodeLabelDoesNotMatch, otherLabel},
		{model.PodOSNotSupported, otherSystem},
		{model.SupplementalGroupsPolicyNotSupported, r.strictGroups},
	}
}

func (r *Request) afterResources() []check {
	return []check{
		{model.NodeAffinity, r.otherNode},
		{model.NodePorts, r.takenPort},
		{model.TaintToleration, r.untolerated},
		{model.AppArmor, r.noAppArmor},
		{model.PodFeatureUnsupported, r.missingFeature},
		{model.UnsupportedPodFeature, r.unsupported},
	}
}

// noDevices corresponds to Allocate of the kubelet's device manager. A pod without an API server waits for devices.
func (r *Request) noDevices(*v1.Pod) string {
	if !r.FromCluster || r.Devices == nil {
		return ""
	}
	return model.AllocateFailed(cmp.Or(r.Devices.Status, r.Devices.Message))
}

// missingFeature corresponds to the kubelet's declaredFeaturesAdmitHandler. Of the features that a pod can need
// (component-helpers: nodedeclaredfeatures), a node with the default feature gates lacks only one.
func (r *Request) missingFeature(pod *v1.Pod) string {
	if !r.FromCluster || !pod.Spec.HostNetwork || ptr.Deref(pod.Spec.HostUsers, true) {
		return ""
	}
	return "Pod requires node features that are not available: UserNamespacesHostNetworkSupport"
}

// Unsupported returns the rejection of a pod of the API server with fields that podctl does not support; nil if there
// are none, or if the pod as it was admitted, before, has such fields too. before is nil for a new pod.
func Unsupported(pod, before *v1.Pod) *model.Rejection {
	r := &Request{Pod: pod, Before: before, FromCluster: true}
	return r.first([]check{{model.UnsupportedPodFeature, r.unsupported}})
}

// maxListed limits the fields that the message of a rejection lists.
const maxListed = 5

// unsupported names the fields of a pod of the API server that podctl does not support. The kubelet has no such rule:
// it supports all of them. Other pods with such a field are refused when their manifest is read.
func (r *Request) unsupported(pod *v1.Pod) string {
	if !r.FromCluster {
		return ""
	}
	refused, _ := fields.InCluster(pod)
	if len(refused) == 0 {
		return ""
	}
	var texts []string
	for _, use := range refused[:min(len(refused), maxListed)] {
		texts = append(texts, use.Path+": "+strings.TrimSuffix(use.Note, "."))
	}
	if more := len(refused) - maxListed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return "Pod uses fields that podctl does not support: " + strings.Join(texts, "; ")
}

// underPressure corresponds to managerImpl.Admit of the kubelet's package eviction. It does not check an admitted pod.
func (r *Request) underPressure(pod *v1.Pod) string {
	if len(r.Conditions) == 0 || r.Before != nil || podspec.IsCritical(pod) {
		return ""
	}
	memory := len(r.Conditions) == 1 && r.Conditions[0] == v1.NodeMemoryPressure
	taint := v1.Taint{Key: v1.TaintNodeMemoryPressure, Effect: v1.TaintEffectNoSchedule}
	if memory && (podspec.QOSClass(pod) != v1.PodQOSBestEffort ||
		corev1.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, &taint, false)) {
		return ""
	}
	return fmt.Sprintf("The node had condition: %v. ", r.Conditions)
}

// linux is the system of every node that podctl runs on.
const linux = "linux"

// otherLabel corresponds to the kubelet's rejectPodAdmissionBasedOnOSSelector.
func otherLabel(pod *v1.Pod) string {
	if system, set := pod.Labels[v1.LabelOSStable]; set && system != linux {
		return "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
	}
	return ""
}

// otherSystem corresponds to the kubelet's rejectPodAdmissionBasedOnOSField.
func otherSystem(pod *v1.Pod) string {
	if pod.Spec.OS != nil && pod.Spec.OS.Name != linux {
		return "Failed to admit pod as the OS field doesn't match node OS"
	}
	return ""
}

// strictGroups corresponds to the kubelet's rejectPodAdmissionBasedOnSupplementalGroupsPolicy.
func (r *Request) strictGroups(pod *v1.Pod) string {
	own := pod.Spec.SecurityContext
	if own == nil || ptr.Deref(own.SupplementalGroupsPolicy, "") != v1.SupplementalGroupsPolicyStrict ||
		ptr.Deref(r.Machine.SupplementalGroups, true) {
		return ""
	}
	return "SupplementalGroupsPolicy=Strict is not supported in this node"
}

// takenPort corresponds to the predicate NodePorts.
func (r *Request) takenPort(pod *v1.Pod) string {
	for _, port := range podspec.HostPorts(pod) {
		for i := range r.Others {
			if slices.ContainsFunc(r.Others[i].Ports, port.Collides) {
				return "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
			}
		}
	}
	return ""
}

// untolerated corresponds to the predicate TaintToleration, which does not apply to pods of other sources than the API
// server (kubelet: generalFilter).
func (r *Request) untolerated(pod *v1.Pod) string {
	if r.Node == nil || !r.FromCluster {
		return ""
	}
	evicts := func(t *v1.Taint) bool { return t.Effect == v1.TaintEffectNoExecute }
	_, found := corev1.FindMatchingUntoleratedTaint(klog.Logger{}, r.Node.Taints, pod.Spec.Tolerations, evicts, false)
	if !found {
		return ""
	}
	return "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
}

// noAppArmor corresponds to the kubelet's appArmorAdmitHandler.
func (r *Request) noAppArmor(pod *v1.Pod) string {
	if ptr.Deref(r.Machine.AppArmor, true) || !wantsAppArmor(pod) {
		return ""
	}
	return "Cannot enforce AppArmor: AppArmor is not enabled on the host"
}

// wantsAppArmor corresponds to isRequired of the kubelet's package apparmor.
func wantsAppArmor(pod *v1.Pod) bool {
	confines := func(p *v1.AppArmorProfile) bool { return p != nil && p.Type != v1.AppArmorProfileTypeUnconfined }
	if own := pod.Spec.SecurityContext; own != nil && confines(own.AppArmorProfile) {
		return true
	}
	for _, ref := range podspec.Containers(pod) {
		if ref.SecurityContext != nil && confines(ref.SecurityContext.AppArmorProfile) {
			return true
		}
	}
	for key, profile := range pod.Annotations {
		if strings.HasPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) &&
			profile != v1.DeprecatedAppArmorBetaProfileNameUnconfined {
			return true
		}
	}
	return false
}
