package nodestatus

import (
	"maps"
	goruntime "runtime"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
)

// Labels of the operating system and the architecture, with the keys of old clusters (kubelet: pkg/apis).
const (
	oldLabelOS   = "beta.kubernetes.io/os"
	oldLabelArch = "beta.kubernetes.io/arch"
)

// attachAnnotation lets the controllers of the cluster attach volumes to the node (kubelet:
// enableControllerAttachDetach).
const attachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"

// Node are the settings of a node that stay the same while the agent runs.
type Node struct {
	// Name is the name of the Node, and HostName the name of the machine. Both are in lower case.
	Name, HostName string
	// Labels, Taints and ProviderID apply only when the Node is created.
	Labels     map[string]string
	Taints     []v1.Taint
	ProviderID string
}

// newNode returns the Node to register (kubelet: initialNode).
func newNode(n *Node, f *Facts) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        n.Name,
		Annotations: map[string]string{attachAnnotation: "true"},
		Labels: map[string]string{
			v1.LabelHostname:   n.HostName,
			v1.LabelOSStable:   goruntime.GOOS,
			v1.LabelArchStable: goruntime.GOARCH,
			oldLabelOS:         goruntime.GOOS,
			oldLabelArch:       goruntime.GOARCH,
		},
	}}
	maps.Copy(node.Labels, n.Labels)
	node.Spec.Taints = slices.Clone(n.Taints)
	node.Spec.ProviderID = n.ProviderID
	return withFacts(node, f)
}

// defaultLabels are the labels that a node sets on its existing Node (kubelet: updateDefaultLabels).
func defaultLabels() []string {
	return []string{
		v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion,
		v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
		v1.LabelInstanceTypeStable, v1.LabelInstanceType,
		v1.LabelOSStable, v1.LabelArchStable, oldLabelOS, oldLabelArch,
	}
}

// reconcile returns the existing Node with the default labels and the huge pages of the initial one. Other labels,
// taints, annotations and resources stay. changed is false if there is nothing to send.
func reconcile(initial, existing *v1.Node) (node *v1.Node, changed bool) {
	node = existing.DeepCopy()
	changed = setDefaultLabels(initial, node)
	for _, list := range []struct{ from, to *v1.ResourceList }{
		{&initial.Status.Capacity, &node.Status.Capacity}, {&initial.Status.Allocatable, &node.Status.Allocatable},
	} {
		if *list.to == nil {
			*list.to = list.from.DeepCopy()
			changed = changed || len(*list.from) > 0
		}
		changed = setHugePages(*list.from, *list.to) || changed
	}
	return node, changed
}

// resetDevices sets the devices of a Node to zero, because they are those of an earlier machine of that name, or of
// another agent. Their plugins register again (kubelet: reconcileExtendedResource).
func resetDevices(status *v1.NodeStatus) (changed bool) {
	for _, list := range []v1.ResourceList{status.Capacity, status.Allocatable} {
		for name, amount := range list {
			if podspec.IsExtendedResource(name) && !amount.IsZero() {
				list[name] = *resource.NewQuantity(0, resource.DecimalSI)
				changed = true
			}
		}
	}
	return changed
}

func setDefaultLabels(initial, node *v1.Node) (changed bool) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	for _, key := range defaultLabels() {
		value, given := initial.Labels[key]
		switch has := node.Labels[key]; {
		case !given || has == value:
		case value == "":
			delete(node.Labels, key)
			changed = true
		default:
			node.Labels[key] = value
			changed = true
		}
	}
	return changed
}

// setHugePages sets the sizes of huge pages that the kernel has, and removes the others.
func setHugePages(from, to v1.ResourceList) (changed bool) {
	for name := range to {
		if _, supported := from[name]; podspec.IsHugePages(name) && !supported {
			delete(to, name)
			changed = true
		}
	}
	for name, amount := range from {
		if has, known := to[name]; podspec.IsHugePages(name) && (!known || has.Cmp(amount) != 0) {
			to[name] = amount.DeepCopy()
			changed = true
		}
	}
	return changed
}

// setResources sets the capacity and the allocatable resources. Those of others stay. A resource without an allocatable
// amount is allocatable as a whole (kubelet: MachineInfo).
func setResources(status *v1.NodeStatus, f *Facts) {
	if status.Capacity == nil {
		status.Capacity = v1.ResourceList{}
	}
	for name, amount := range f.Capacity {
		status.Capacity[name] = amount.DeepCopy()
	}
	before := status.Allocatable
	status.Allocatable = v1.ResourceList{}
	for name, amount := range before {
		if _, has := status.Capacity[name]; has || !podspec.IsExtendedResource(name) {
			status.Allocatable[name] = amount
		}
	}
	for name, amount := range status.Capacity {
		if own, computed := f.Allocatable[name]; computed {
			amount = own
		}
		status.Allocatable[name] = amount.DeepCopy()
	}
}
