package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
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
	container *Container
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
// was applied nothing has changed.
func (v *view) resizeOf(spec *v1.Container, c *Container) resizeVerdict {
	verdict := resizeNone
	for _, name := range v.resized(spec, c) {
		if resizePolicy(spec, name) == v1.RestartContainer {
			return resizeRestarts
		}
		verdict = resizeInPlace
	}
	return verdict
}

// resized lists the resources of a running container that differ from what was
// applied.
func (v *view) resized(spec *v1.Container, c *Container) []v1.ResourceName {
	actuated := v.obs.Journal.Actuated
	if actuated == nil || c.State != Running {
		return nil
	}
	applied := actuated.Containers[spec.Name]
	wanted := EffectiveResources(v.pod, spec)
	var names []v1.ResourceName
	for _, name := range resizable() {
		if differs(wanted.Requests, applied.Requests, name) || differs(wanted.Limits, applied.Limits, name) {
			names = append(names, name)
		}
	}
	return names
}

// EffectiveResources are a container's resources, with the pod's limits for
// those it has none of its own.
func EffectiveResources(pod *v1.Pod, spec *v1.Container) v1.ResourceRequirements {
	own := v1.ResourceRequirements{Requests: spec.Resources.Requests, Limits: spec.Resources.Limits.DeepCopy()}
	if pod.Spec.Resources == nil {
		return own
	}
	for _, name := range resizable() {
		limit, ok := pod.Spec.Resources.Limits[name]
		if _, has := own.Limits[name]; ok && !has {
			if own.Limits == nil {
				own.Limits = v1.ResourceList{}
			}
			own.Limits[name] = limit
		}
	}
	return own
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
func (v *view) updateOf(ref podspec.ContainerRef, c *Container) update {
	applied := v.obs.Journal.Actuated.Containers[ref.Name]
	wanted := EffectiveResources(v.pod, ref.Container)
	u := update{container: c, ref: ref}
	for _, name := range v.resized(ref.Container, c) {
		u.changes = append(u.changes, listChange("resources.limits", applied.Limits, wanted.Limits, name)...)
		u.changes = append(u.changes, listChange("resources.requests", applied.Requests, wanted.Requests, name)...)
	}
	return u
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
	actuated := v.obs.Journal.Actuated
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
