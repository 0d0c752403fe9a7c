package nodestatus

import (
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/machine"
)

// Facts are the facts from which the status of a Node is computed.
type Facts struct {
	// Now is the time of the status.
	Now time.Time
	// Addresses are the addresses of the node (see Addresses). Port is that of the node's server.
	Addresses []v1.NodeAddress
	Port      int32
	// Machine identifies the machine, and Version is the version that the Node shows (see Version).
	Machine machine.Identity
	Version string
	// Capacity and Allocatable are the resources of the machine (admission.Settings.NodeResources). A resource that
	// could not be measured is missing.
	Capacity, Allocatable v1.ResourceList
	// Runtime are the facts of the container runtime. While they are nil, the status keeps the earlier ones.
	Runtime *RuntimeFacts
	// Pressures are the conditions that eviction has set. While they are nil, because nothing has been measured, the
	// status keeps the earlier ones.
	Pressures []v1.NodeConditionType
	// Causes are the reasons for which the node is not ready, in a kubelet's words and order: runtime, network,
	// shutdown.
	Causes []string
	// Early is set at the start of the agent, while the runtime may still answer and list its records for the first
	// time. The status of an existing Node then stays, so that a restart does not change its readiness.
	Early bool
}

// declaredFeatures returns the names of the features for which the API server checks whether a node supports them, in
// alphabetical order. They are those of a kubelet with its default feature gates (component-helpers:
// nodedeclaredfeatures).
func declaredFeatures() []string {
	return []string{
		// The node's server takes WebSocket connections (package kubeletapi), so that kubectl gets its errors directly.
		"ExtendWebSocketsToKubelet",
		"InPlacePodLevelResourcesVerticalScaling",
		"InPlacePodVerticalScalingInitContainers",
		"RestartAllContainersOnContainerExits",
	}
}

// version is the version of Kubernetes that podctl follows.
const version = "v1.36.3"

// Version returns the kubelet version of a Node for a version of podctl.
func Version(podctl string) string {
	return version + "+podctl." + strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, strings.TrimPrefix(podctl, "v"))
}

// Addresses returns the addresses of a node: the first of each family, and the name of the machine (kubelet:
// NodeAddress).
func Addresses(ips []string, hostName string) []v1.NodeAddress {
	var all []v1.NodeAddress
	families := map[bool]bool{}
	for _, ip := range ips {
		if v6 := strings.Contains(ip, ":"); !families[v6] {
			families[v6] = true
			all = append(all, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
		}
	}
	return append(all, v1.NodeAddress{Type: v1.NodeHostName, Address: hostName})
}

// withFacts returns a copy of the Node with the status of the facts. Conditions, resources and labels of others stay.
func withFacts(existing *v1.Node, f *Facts) *v1.Node {
	node := existing.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[v1.LabelOSStable], node.Labels[v1.LabelArchStable] = goruntime.GOOS, goruntime.GOARCH
	status := &node.Status
	if slices.ContainsFunc(f.Addresses, func(a v1.NodeAddress) bool { return a.Type == v1.NodeInternalIP }) {
		status.Addresses = slices.Clone(f.Addresses)
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = f.Port
	setInfo(&status.NodeInfo, f)
	setResources(status, f)
	if f.Runtime != nil {
		f.Runtime.set(status)
	}
	status.DeclaredFeatures = declaredFeatures()
	setConditions(status, f)
	return node
}

func setInfo(info *v1.NodeSystemInfo, f *Facts) {
	m := &f.Machine
	info.MachineID, info.SystemUUID, info.BootID = m.MachineID, m.SystemUUID, m.BootID
	info.KernelVersion, info.OSImage = m.KernelVersion, m.OSImage
	info.KubeletVersion = f.Version
	info.KubeProxyVersion = "" //nolint:staticcheck // a kubelet clears it
	info.OperatingSystem, info.Architecture = goruntime.GOOS, goruntime.GOARCH
	info.Swap = nil
	if m.SwapBytes != 0 {
		info.Swap = &v1.NodeSwapStatus{Capacity: &m.SwapBytes}
	}
}

// hasChanged reports whether two versions of a Node differ in their status, except for the times of heartbeats, or in
// the labels that a node always sets.
func hasChanged(before, now *v1.Node) bool {
	one, other := before.Status.DeepCopy(), now.Status.DeepCopy()
	one.Conditions, other.Conditions = nil, nil
	return conditionsChanged(before, now) || !equality.Semantic.DeepEqual(one, other) ||
		before.Labels[v1.LabelOSStable] != now.Labels[v1.LabelOSStable] ||
		before.Labels[v1.LabelArchStable] != now.Labels[v1.LabelArchStable]
}

// conditionsChanged reports whether the conditions of two versions of a Node differ, except for the times of
// heartbeats and their order.
func conditionsChanged(before, now *v1.Node) bool {
	return !equality.Semantic.DeepEqual(ordered(before.Status.Conditions), ordered(now.Status.Conditions))
}

func ordered(conditions []v1.NodeCondition) []v1.NodeCondition {
	all := slices.Clone(conditions)
	for i := range all {
		all[i].LastHeartbeatTime = metav1.Time{}
	}
	slices.SortStableFunc(all, func(a, b v1.NodeCondition) int {
		return strings.Compare(string(a.Type), string(b.Type))
	})
	return all
}
