package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodesysctl "k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// otherNode corresponds to the predicate NodeAffinity. The labels of an unknown machine match everything. The labels of
// the Node in the API replace those of the settings.
//
// spec.nodeName is not a reason: a kubelet sets its own name on every pod of its files (kubelet: applyDefaults).
func (r *Request) otherNode(pod *v1.Pod) string {
	labels := r.Settings.Labels
	if r.Node != nil {
		labels = r.Node.Labels
	}
	if Unfit(pod, r.Machine, labels) == "" {
		return ""
	}
	return "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
}

// Unfit returns why a machine does not match the nodeSelector and required node affinity of a pod; empty if it matches
// or is unknown. The machine has its own labels and the given ones, and no taints.
func Unfit(pod *v1.Pod, machine *model.Machine, given map[string]string) string {
	if machine.Labels == nil {
		return ""
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Labels: map[string]string{}}}
	maps.Copy(node.Labels, given)
	maps.Copy(node.Labels, machine.Labels)
	if matches, _ := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); matches {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		if want := pod.Spec.NodeSelector[key]; node.Labels[key] != want {
			return fmt.Sprintf("this node has no label %s=%s", key, want)
		}
	}
	return "the labels of this node are not those that spec.affinity.nodeAffinity requires"
}

// forbiddenSysctl finds a sysctl that is not on the list of allowed ones, or that would belong to the node (kubelet:
// patternAllowlist.validateSysctl).
func (r *Request) forbiddenSysctl(pod *v1.Pod) string {
	if pod.Spec.SecurityContext == nil {
		return ""
	}
	for _, sysctl := range pod.Spec.SecurityContext.Sysctls {
		name := podspec.SysctlName(sysctl.Name)
		ns, allowed := r.allowed(name)
		switch {
		case !allowed:
			return fmt.Sprintf("forbidden sysctl: %q not allowlisted", name)
		case ns == nodesysctl.IPCNamespace && pod.Spec.HostIPC, ns == nodesysctl.NetNamespace && pod.Spec.HostNetwork:
			return fmt.Sprintf("forbidden sysctl: %q not allowed with host %s enabled", name, ns)
		}
	}
	return ""
}

// allowed looks up a sysctl in the list and returns its namespace.
func (r *Request) allowed(name string) (nodesysctl.Namespace, bool) {
	for _, pattern := range slices.Concat(safeSysctls(), r.Settings.UnsafeSysctls) {
		ns, listed, isPrefix := nodesysctl.GetNamespace(pattern)
		if listed == name || (isPrefix && strings.HasPrefix(name, listed)) {
			return ns, true
		}
	}
	return "", false
}
