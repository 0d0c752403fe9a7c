package plan

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// resizable lists the two resources that can change in place, in the order in
// which the kubelet changes them.
func resizable() []v1.ResourceName {
	return []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU}
}

// resizing compares what the manifest asks of a running container's cpu and memory with
// what was applied last (kubelet: computePodResizeAction).
type resizing struct {
	spec            *v1.Container
	applied, wanted v1.ResourceRequirements
	// resized are the resources that differ. Without any record of what was applied
	// nothing has changed.
	resized []v1.ResourceName
	// byKubelet reports whether a kubelet made the container.
	byKubelet bool
}

func resizingOf(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) *resizing {
	if pod.Observed.Memory.Actuated == nil {
		return &resizing{}
	}
	r := &resizing{
		spec: spec, applied: appliedResources(pod, spec.Name), wanted: wantedResources(pod, spec), byKubelet: rec.SpecHash == "",
	}
	r.resized = slices.DeleteFunc(resizable(), func(name v1.ResourceName) bool {
		return !differs(r.wanted.Requests, r.applied.Requests, name) && !differs(r.wanted.Limits, r.applied.Limits, name)
	})
	return r
}

// restarts reports whether the container has to be started anew: its policy says so, or a
// limit is taken away, for which the CRI has no word.
func (r *resizing) restarts() bool {
	return slices.ContainsFunc(r.resized, func(name v1.ResourceName) bool {
		return resizePolicy(r.spec, name) == v1.RestartContainer || r.limitRemoved(name)
	})
}

// limitRemoved reports whether a limit was taken away. A container that a kubelet made
// is judged as a kubelet does, which asks the runtime all the same.
func (r *resizing) limitRemoved(name v1.ResourceName) bool {
	before, after := r.applied.Limits[name], r.wanted.Limits[name]
	return !r.byKubelet && !before.IsZero() && after.IsZero()
}

// grows reports whether the container gets more than it has.
func (r *resizing) grows() bool {
	return slices.ContainsFunc(resizable(), func(name v1.ResourceName) bool {
		before, after := r.applied.Limits[name], r.wanted.Limits[name]
		return after.Cmp(before) > 0
	})
}

// changes are the fields that differ.
func (r *resizing) changes() []diff.Change {
	var changes []diff.Change
	for _, name := range r.resized {
		changes = append(changes, listChange("resources.limits", r.applied.Limits, r.wanted.Limits, name)...)
		changes = append(changes, listChange("resources.requests", r.applied.Requests, r.wanted.Requests, name)...)
	}
	return changes
}

// text says why a resize restarts the container.
func (r *resizing) text() string {
	why := "its resizePolicy asks for a restart"
	if slices.ContainsFunc(r.resized, r.limitRemoved) {
		why = "a limit cannot be taken away in place"
	}
	return fmt.Sprintf("%s; %s", diff.Diff{Changes: r.changes()}.Text(), why)
}

// wantedResources are those that the manifest asks for, appliedResources those
// that were applied last; each with the pod's own limits of its time.
func wantedResources(pod *podstatus.Pod, spec *v1.Container) v1.ResourceRequirements {
	return withPodLimits(spec.Resources, pod.Manifest.Spec.Resources)
}

func appliedResources(pod *podstatus.Pod, name string) v1.ResourceRequirements {
	actuated := pod.Observed.Memory.Actuated
	return withPodLimits(actuated.Containers[name], actuated.Pod)
}

// withPodLimits adds the pod's limits for those a container has none of its own.
func withPodLimits(own v1.ResourceRequirements, pod *v1.ResourceRequirements) v1.ResourceRequirements {
	if pod == nil {
		return own
	}
	limits := v1.ResourceList{}
	for _, name := range resizable() {
		if limit, ok := pod.Limits[name]; ok {
			limits[name] = limit
		}
	}
	maps.Copy(limits, own.Limits)
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

func listChange(path string, before, after v1.ResourceList, name v1.ResourceName) []diff.Change {
	if !differs(before, after, name) {
		return nil
	}
	return []diff.Change{{Path: fmt.Sprintf("%s.%s", path, name), Before: quantity(before, name), After: quantity(after, name)}}
}

func quantity(list v1.ResourceList, name v1.ResourceName) string {
	q, ok := list[name]
	if !ok {
		return ""
	}
	return q.String()
}

// podGrows reports whether the limits of the pod's containers come to more than was
// applied: the pod's own cgroup then has to grow before them.
func podGrows(pod *podstatus.Pod) bool {
	if pod.Observed.Memory.Actuated == nil {
		return false
	}
	return slices.ContainsFunc(resizable(), func(name v1.ResourceName) bool {
		var before, after resource.Quantity
		for _, ref := range podstatus.Lasting(pod.Manifest) {
			before.Add(appliedResources(pod, ref.Name).Limits[name])
			after.Add(wantedResources(pod, ref.Container).Limits[name])
		}
		return after.Cmp(before) > 0
	})
}

// podResized reports whether the pod-level resources differ from what was applied.
func podResized(pod *podstatus.Pod) bool {
	actuated := pod.Observed.Memory.Actuated
	if actuated == nil {
		return false
	}
	before, after := ptr.Deref(actuated.Pod, v1.ResourceRequirements{}), ptr.Deref(pod.Manifest.Spec.Resources, v1.ResourceRequirements{})
	return !sameList(before.Limits, after.Limits) || !sameList(before.Requests, after.Requests)
}

func sameList(a, b v1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}
