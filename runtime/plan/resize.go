package plan

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// resizeVerdict says what changed resources mean for a running container.
type resizeVerdict int

const (
	resizeNone resizeVerdict = iota
	resizeInPlace
	resizeRestarts
)

// update is a running container whose resources change in place.
type update struct {
	container *model.Container
	ref       podspec.ContainerRef
	changes   []Change
}

// resizable lists the two resources that can change in place, in the order in
// which the kubelet changes them.
func resizable() []v1.ResourceName {
	return []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU}
}

// resizeOf compares what the manifest asks of cpu and memory with what was
// applied last (kubelet: computePodResizeAction). Without any record of what
// was applied nothing has changed. A limit cannot be taken away in place, as the
// CRI has no word for that.
func (v *view) resizeOf(spec *v1.Container, c *model.Container) resizeVerdict {
	verdict := resizeNone
	for _, name := range v.resized(spec, c) {
		if resizePolicy(spec, name) == v1.RestartContainer || v.limitRemoved(spec, c, name) {
			return resizeRestarts
		}
		verdict = resizeInPlace
	}
	return verdict
}

// resized lists the resources of a running container that differ from what was
// applied.
func (v *view) resized(spec *v1.Container, c *model.Container) []v1.ResourceName {
	if v.obs.Memory.Actuated == nil || c.State != model.Running {
		return nil
	}
	applied, wanted := v.appliedResources(spec.Name), v.wantedResources(spec)
	var names []v1.ResourceName
	for _, name := range resizable() {
		if differs(wanted.Requests, applied.Requests, name) || differs(wanted.Limits, applied.Limits, name) {
			names = append(names, name)
		}
	}
	return names
}

// limitRemoved tells that a limit was taken away. A container that a kubelet made
// is judged as a kubelet does, which asks the runtime all the same.
func (v *view) limitRemoved(spec *v1.Container, c *model.Container, name v1.ResourceName) bool {
	if c.SpecHash == "" {
		return false
	}
	before, after := v.appliedResources(spec.Name).Limits[name], v.wantedResources(spec).Limits[name]
	return !before.IsZero() && after.IsZero()
}

// wantedResources are those that the manifest asks for, appliedResources those
// that were applied last; each with the pod's own limits of its time.
func (v *view) wantedResources(spec *v1.Container) v1.ResourceRequirements {
	return withPodLimits(spec.Resources, v.pod.Spec.Resources)
}

func (v *view) appliedResources(name string) v1.ResourceRequirements {
	actuated := v.obs.Memory.Actuated
	return withPodLimits(actuated.Containers[name], actuated.Pod)
}

// withPodLimits adds the pod's limits for those a container has none of its own.
func withPodLimits(own v1.ResourceRequirements, pod *v1.ResourceRequirements) v1.ResourceRequirements {
	if pod == nil {
		return own
	}
	limits := v1.ResourceList{}
	maps.Copy(limits, own.Limits)
	for _, name := range resizable() {
		limit, ok := pod.Limits[name]
		if _, has := own.Limits[name]; ok && !has {
			limits[name] = limit
		}
	}
	return v1.ResourceRequirements{Requests: own.Requests, Limits: limits}
}

func differs(a, b v1.ResourceList, name v1.ResourceName) bool {
	x, y := a[name], b[name]
	if name == v1.ResourceCPU {
		return x.MilliValue() != y.MilliValue()
	}
	return x.Value() != y.Value()
}

func resizePolicy(spec *v1.Container, name v1.ResourceName) v1.ResourceResizeRestartPolicy {
	for _, p := range spec.ResizePolicy {
		if p.ResourceName == name {
			return p.RestartPolicy
		}
	}
	return v1.NotRequired
}

// updateOf describes an update in place, field by field.
func (v *view) updateOf(ref podspec.ContainerRef, c *model.Container) update {
	return update{container: c, ref: ref, changes: v.resourceChanges(ref.Container, c)}
}

func (v *view) resourceChanges(spec *v1.Container, c *model.Container) []Change {
	applied, wanted := v.appliedResources(spec.Name), v.wantedResources(spec)
	var changes []Change
	for _, name := range v.resized(spec, c) {
		changes = append(changes, listChange("resources.limits", applied.Limits, wanted.Limits, name)...)
		changes = append(changes, listChange("resources.requests", applied.Requests, wanted.Requests, name)...)
	}
	return changes
}

// resizeText says why a resize restarts a container.
func (v *view) resizeText(spec *v1.Container, c *model.Container) string {
	why := "its resizePolicy asks for a restart"
	for _, name := range v.resized(spec, c) {
		if v.limitRemoved(spec, c, name) {
			why = "a limit cannot be taken away in place"
		}
	}
	return fmt.Sprintf("%s; %s", changeText(v.resourceChanges(spec, c)), why)
}

// grows tells that an update gives a container more than it has.
func (v *view) grows(u update) bool {
	applied, wanted := v.appliedResources(u.ref.Name), v.wantedResources(u.ref.Container)
	for _, name := range resizable() {
		before, after := applied.Limits[name], wanted.Limits[name]
		if after.Cmp(before) > 0 {
			return true
		}
	}
	return false
}

// podGrows tells that the limits of the pod's containers come to more than was
// applied: the pod's own cgroup then has to grow before them.
func (v *view) podGrows() bool {
	if v.obs.Memory.Actuated == nil {
		return false
	}
	for _, name := range resizable() {
		var before, after resource.Quantity
		for _, ref := range runsInPod(v.pod) {
			before.Add(v.appliedResources(ref.Name).Limits[name])
			after.Add(v.wantedResources(ref.Container).Limits[name])
		}
		if after.Cmp(before) > 0 {
			return true
		}
	}
	return false
}

func listChange(path string, before, after v1.ResourceList, name v1.ResourceName) []Change {
	if !differs(before, after, name) {
		return nil
	}
	return []Change{{Path: fmt.Sprintf("%s.%s", path, name), Before: quantity(before, name), After: quantity(after, name)}}
}

func quantity(list v1.ResourceList, name v1.ResourceName) string {
	q, ok := list[name]
	if !ok {
		return ""
	}
	return q.String()
}

// podResized tells that the pod-level resources differ from what was applied.
func (v *view) podResized() bool {
	actuated := v.obs.Memory.Actuated
	if actuated == nil {
		return false
	}
	return !sameResources(actuated.Pod, v.pod.Spec.Resources)
}

func sameResources(a, b *v1.ResourceRequirements) bool {
	if a == nil {
		a = &v1.ResourceRequirements{}
	}
	if b == nil {
		b = &v1.ResourceRequirements{}
	}
	return sameList(a.Limits, b.Limits) && sameList(a.Requests, b.Requests)
}

func sameList(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
