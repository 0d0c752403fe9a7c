package admission

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Notes describes why a kubelet on this machine would reject a pod that podctl runs anyway. Unknown facts of the
// machine are not a reason. Faults for which podctl holds the pod are not included.
func Notes(pod *v1.Pod, machine *model.Machine) []string {
	return slices.Concat(unsafeSysctls(pod), unlabelled(pod, machine), oversized(pod, machine))
}

// oversized lists requests of the pod that the machine cannot satisfy.
func oversized(pod *v1.Pod, machine *model.Machine) []string {
	if len(machine.Capacity) == 0 {
		return nil
	}
	var notes []string
	requests := requestsOf(pod)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		wants, has := requests[name], machine.Capacity[name]
		if isCounted(name) && wants.Cmp(has) > 0 {
			notes = append(notes, fmt.Sprintf("the pod requests %s of %s, and this machine has %s: "+
				"a kubelet would refuse it (%s)", wants.String(), name, has.String(), model.OutOf(name)))
		}
	}
	return notes
}

// isCounted reports whether the capacity for a resource is always known, so that a missing entry means zero: a kernel
// may not have that size of huge pages.
func isCounted(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || podspec.IsHugePages(name)
}

// unsafeSysctls lists the sysctls that a kubelet sets only if it is configured to (kubelet: SafeSysctlAllowlist).
func unsafeSysctls(pod *v1.Pod) []string {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	var notes []string
	for i, sysctl := range pod.Spec.SecurityContext.Sysctls {
		if name := podspec.SysctlName(sysctl.Name); !slices.Contains(safeSysctls(), name) {
			notes = append(notes, fmt.Sprintf(
				"spec.securityContext.sysctls[%d]: "+
					"a kubelet would refuse the pod unless its --allowed-unsafe-sysctls has it (SysctlForbidden): "+
					"forbidden sysctl: %q not allowlisted",
				i, name))
		}
	}
	return notes
}

func safeSysctls() []string {
	return []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports",
		"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
		"net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
	}
}

// unlabelled reports labels in the pod's nodeSelector that a kubelet of this machine does not set by itself (kubelet:
// initialNode).
func unlabelled(pod *v1.Pod, machine *model.Machine) []string {
	var notes []string
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		want := pod.Spec.NodeSelector[key]
		has, known := machine.Labels[key]
		switch {
		case known && has != want:
			notes = append(notes, fmt.Sprintf("spec.nodeSelector[%s] is %s, but this machine has %s: "+
				"a kubelet would refuse the pod (NodeAffinity)", key, want, has))
		case !known && machine.Labels != nil:
			notes = append(notes, fmt.Sprintf("spec.nodeSelector[%s]: "+
				"a kubelet would refuse the pod unless its node has the label %s=%s (NodeAffinity)", key, key, want))
		}
	}
	affinity := pod.Spec.Affinity
	if affinity != nil && affinity.NodeAffinity != nil &&
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		notes = append(notes, "spec.affinity.nodeAffinity: "+
			"a kubelet would refuse the pod unless its node has the labels that it requires (NodeAffinity)")
	}
	return notes
}
