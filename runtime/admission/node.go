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

// otherNode: the predicate NodeAffinity. The labels of an unknown machine match everything.
//
// spec.nodeName is none of the reasons: a kubelet gives every pod of its files its own name
// (kubelet: applyDefaults).
func (r *Request) otherNode(pod *v1.Pod) string {
	if Unfit(pod, r.Machine, r.Settings.Labels) == "" {
		return ""
	}
	return "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
}

// Unfit says why a machine is none of the nodes that a pod selects by nodeSelector and required node affinity; empty where it
// is one, or is not known. It has its own labels and those that are given, and no taints.
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

// forbiddenSysctl finds a sysctl that is not on the list of those that pods may set, or that would be
// the node's (kubelet: patternAllowlist.validateSysctl).
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

// allowed finds a sysctl on the list, with the namespace that it belongs to.
func (r *Request) allowed(name string) (nodesysctl.Namespace, bool) {
	for _, pattern := range slices.Concat(safeSysctls(), r.Settings.UnsafeSysctls) {
		ns, listed, isPrefix := nodesysctl.GetNamespace(pattern)
		if listed == name || (isPrefix && strings.HasPrefix(name, listed)) {
			return ns, true
		}
	}
	return "", false
}
