package eviction

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/podctl/podctl/podspec"
)

// message returns the kubelet's message for an eviction (evictionMessage).
func message(t *Threshold, left Amount, pod *v1.Pod, usage *Usage) string {
	what := t.Signal.resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %v. ", what)
	fmt.Fprintf(&b, "Threshold quantity: %v, available: %v. ", t.quantity(left.Capacity), left.available(t.Signal))
	if usage == nil {
		return b.String()
	}
	if what == v1.ResourceMemory && resourcehelper.IsPodLevelResourcesSet(pod) {
		if request, asks := pod.Spec.Resources.Requests[what]; asks {
			used := resource.NewQuantity(usage.memory(), resource.BinarySI)
			fmt.Fprintf(&b, "Pod %s was using %s, request is %s, has larger consumption of %v. ",
				pod.Name, used, &request, what)
		}
	}
	for i := range usage.Containers {
		b.WriteString(usage.Containers[i].message(what, pod))
	}
	return b.String()
}

// message describes a container that uses more than it requests. It is empty for other containers, and for debug
// containers, which cannot request resources.
func (c *ContainerUsage) message(what v1.ResourceName, pod *v1.Pod) string {
	ref, found := podspec.FindContainer(pod, c.Name)
	used := c.of(what)
	if !found || ref.Type == podspec.Ephemeral || used == nil {
		return ""
	}
	request := ref.Resources.Requests[what]
	if used.Cmp(request) <= 0 {
		return ""
	}
	return fmt.Sprintf("Container %s was using %s, request is %s, has larger consumption of %v. ",
		c.Name, used, &request, what)
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
