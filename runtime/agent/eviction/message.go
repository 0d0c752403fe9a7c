package eviction

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
)

// Keys of annotations of a kubelet's event. usageOf ends those of amounts.
const (
	starvedResource     = "starved_resource"
	offendingPod        = "offending_pod"
	offendingContainers = "offending_containers"
	usageOf             = "_usage"
)

// explain returns the kubelet's message for an eviction, and the annotations of its event (evictionMessage).
func explain(t *Threshold, left Amount, pod *v1.Pod, usage *Usage) (message string, annotations map[string]string) {
	what := t.Signal.resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %v. ", what)
	fmt.Fprintf(&b, "Threshold quantity: %v, available: %v. ", t.quantity(left.Capacity), left.available(t.Signal))
	annotations = map[string]string{starvedResource: string(what)}
	if what == v1.ResourceMemory && resourcehelper.IsPodLevelResourcesSet(pod) {
		if request, asks := pod.Spec.Resources.Requests[what]; asks {
			used := resource.NewQuantity(usage.memory(), resource.BinarySI)
			fmt.Fprintf(&b, "Pod %s was using %s, request is %s, has larger consumption of %v. ",
				pod.Name, used, &request, what)
			annotations[offendingPod], annotations[offendingPod+usageOf] = pod.Name, used.String()
		}
	}
	var names, amounts []string
	for i := range usage.Containers {
		c := &usage.Containers[i]
		if used, request := c.excess(what, pod); used != nil {
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %v. ",
				c.Name, used, request, what)
			names, amounts = append(names, c.Name), append(amounts, used.String())
		}
	}
	annotations[offendingContainers] = strings.Join(names, ",")
	annotations[offendingContainers+usageOf] = strings.Join(amounts, ",")
	return b.String(), annotations
}

// excess returns what a container uses and requests if it uses more than it requests. Other containers have no excess,
// nor have debug containers, which cannot request resources.
func (c *ContainerUsage) excess(what v1.ResourceName, pod *v1.Pod) (used, request *resource.Quantity) {
	ref, found := podspec.FindContainer(pod, c.Name)
	used = c.of(what)
	if !found || ref.Type == podspec.Ephemeral || used == nil {
		return nil, nil
	}
	requested := ref.Resources.Requests[what]
	if used.Cmp(requested) <= 0 {
		return nil, nil
	}
	return used, &requested
}

// of returns the container's usage of a resource. It is nil if the usage is unknown or not part of the message.
func (c *ContainerUsage) of(what v1.ResourceName) *resource.Quantity {
	switch {
	case what == v1.ResourceMemory && c.Memory != nil:
		return resource.NewQuantity(*c.Memory, resource.BinarySI)
	case what == v1.ResourceEphemeralStorage && c.Root != nil && c.Logs != nil:
		return resource.NewQuantity(c.Root.Bytes+c.Logs.Bytes, resource.BinarySI)
	}
	return nil
}
