package criconfig

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// namespaces returns which namespaces a pod shares (kubelet: NamespacesForPod). With a target the container sees the
// processes of the target.
func namespaces(pod *v1.Pod, targetID string, users *IDMapping) *runtimeapi.NamespaceOption {
	n := &runtimeapi.NamespaceOption{
		Network:       runtimeapi.NamespaceMode_POD,
		Ipc:           runtimeapi.NamespaceMode_POD,
		Pid:           pidMode(pod),
		UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE},
	}
	if OwnUsers(pod) && users != nil {
		n.UsernsOptions = &runtimeapi.UserNamespace{
			Mode: runtimeapi.NamespaceMode_POD,
			Uids: users.messages(),
			Gids: users.messages(),
		}
	}
	if pod.Spec.HostNetwork {
		n.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		n.Ipc = runtimeapi.NamespaceMode_NODE
	}
	if targetID != "" && n.GetPid() == runtimeapi.NamespaceMode_CONTAINER {
		n.Pid, n.TargetId = runtimeapi.NamespaceMode_TARGET, targetID
	}
	return n
}

// OwnUsers reports whether a pod has its own user namespace.
func OwnUsers(pod *v1.Pod) bool { return !ptr.Deref(pod.Spec.HostUsers, true) }

// messages converts the mapping for the CRI: IDs from zero in the container are IDs from HostID on the node. It returns
// nil for a pod that shares the node's IDs.
func (m *IDMapping) messages() []*runtimeapi.IDMapping {
	if m == nil {
		return nil
	}
	return []*runtimeapi.IDMapping{{HostId: m.HostID, ContainerId: 0, Length: m.Length}}
}

// checkUsers refuses a user namespace that the runtime does not support, or that has no allocated IDs. A pod with an
// unknown handler passes: it may have a sandbox, but gets no new one.
func checkUsers(d *podspec.Desired, node Node, users *IDMapping) error {
	if !OwnUsers(d.Pod) {
		return nil
	}
	handler, err := node.HandlerOf(d)
	if err != nil {
		return nil //nolint:nilerr // as described above
	}
	if !node.Handlers[handler].UserNamespaces {
		text := "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
		if handler != "" {
			text = fmt.Sprintf("can't set `spec.hostUsers: false`, "+
				"RuntimeClass handler %q does not support user namespaces", handler)
		}
		return &model.KubeletError{
			Err: fmt.Errorf("spec.hostUsers: %s does not support user namespaces "+
				"(containerd 2.0 and newer do, with crun or runc 1.2)", nameOf(handler)),
			Text: text,
		}
	}
	if users == nil {
		return fmt.Errorf("spec.hostUsers: the pod has no range of user ids")
	}
	return nil
}

// nameOf returns the name of a handler for messages.
func nameOf(handler string) string {
	if handler == "" {
		return "the runtime"
	}
	return fmt.Sprintf("the handler %q of the runtime", handler)
}

func pidMode(pod *v1.Pod) runtimeapi.NamespaceMode {
	switch {
	case pod.Spec.HostPID:
		return runtimeapi.NamespaceMode_NODE
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		return runtimeapi.NamespaceMode_POD
	}
	return runtimeapi.NamespaceMode_CONTAINER
}

// supplementalGroups returns fsGroup and then the pod's own groups.
func supplementalGroups(pod *v1.Pod) []int64 {
	own := pod.Spec.SecurityContext
	if own == nil {
		return nil
	}
	var groups []int64
	if own.FSGroup != nil {
		groups = append(groups, *own.FSGroup)
	}
	return append(groups, own.SupplementalGroups...)
}

func groupsPolicy(pod *v1.Pod) runtimeapi.SupplementalGroupsPolicy {
	if own := pod.Spec.SecurityContext; own != nil &&
		ptr.Deref(own.SupplementalGroupsPolicy, "") == v1.SupplementalGroupsPolicyStrict {
		return runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return runtimeapi.SupplementalGroupsPolicy_Merge
}
