package plan

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
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
	// resized are the resources that differ. Without any record of what was applied, and
	// if the runtime does not tell either, nothing has changed.
	resized []v1.ResourceName
	// kept are resources that differ from what runs and stay: nobody has edited them, and
	// only a restart would change them.
	kept []v1.ResourceName
	// byKubelet reports whether a kubelet made the container.
	byKubelet bool
}

func resizingOf(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) *resizing {
	before, known := resourcesBefore(pod, spec, rec)
	if !known {
		return &resizing{}
	}
	r := &resizing{spec: spec, applied: before.resources, wanted: wantedResources(pod, spec), byKubelet: rec.SpecHash == ""}
	for _, name := range resizable() {
		switch {
		case !differ(r.wanted, r.applied, name):
		case !before.recorded && r.needsRestart(name) && !resourceEdited(pod, spec, name):
			r.kept = append(r.kept, name)
		default:
			r.resized = append(r.resized, name)
		}
	}
	return r
}

func differ(a, b v1.ResourceRequirements, name v1.ResourceName) bool {
	return differs(a.Requests, b.Requests, name) || differs(a.Limits, b.Limits, name)
}

// applied are the resources that a container has, as far as podctl knows.
type applied struct {
	resources v1.ResourceRequirements
	// recorded reports whether they were applied, and not only found.
	recorded bool
}

// resourcesBefore are the resources that a running container has: those in podctl's record
// of what was applied; else those that the runtime reports, as of a container that was
// adopted; else those of the manifest that was applied last. A container that a kubelet
// made and of which nothing is known is taken to have none (kubelet:
// computePodResizeAction: the update changes nothing that is so already).
func resourcesBefore(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (applied, bool) {
	actuated := pod.Observed.Memory.Actuated
	if actuated != nil {
		if own, ok := actuated.Containers[spec.Name]; ok {
			return applied{withPodLimits(own, actuated.Pod), true}, true
		}
	}
	last := lastApplied(pod, spec)
	switch {
	case rec.Resources != nil:
		return applied{resources: found(rec.Resources, last, wantedResources(pod, spec))}, true
	case actuated != nil:
		return applied{withPodLimits(v1.ResourceRequirements{}, actuated.Pod), true}, true
	case last != nil:
		return applied{*last, true}, true
	case pod.Observed.Unrecorded && rec.SpecHash == "":
		return applied{}, true
	}
	return applied{}, false
}

// lastApplied are a container's resources by the manifest that was applied last; nil when it
// is unknown or did not have the container.
func lastApplied(pod *podstatus.Pod, spec *v1.Container) *v1.ResourceRequirements {
	last := appliedOf(pod)
	if last == nil {
		return nil
	}
	ref, ok := podspec.FindContainer(last.Pod, spec.Name)
	if !ok {
		return nil
	}
	r := withPodLimits(ref.Resources, last.Pod.Spec.Resources)
	return &r
}

// resourceEdited reports whether the manifest asks for another amount than the one applied
// last.
func resourceEdited(pod *podstatus.Pod, spec *v1.Container, name v1.ResourceName) bool {
	last := lastApplied(pod, spec)
	return last != nil && differ(*last, wantedResources(pod, spec), name)
}

// The least cpu that the kernel knows, in thousandths of a core (kubelet: cm.MinShares,
// cm.MinMilliCPULimit).
const (
	minMilliRequest = 2
	minMilliLimit   = 10
)

// found are the resources that a runtime reports of a container. It knows no request of
// memory, which is the one applied last, and amounts of cpu that are the same to the kernel
// are those that are wanted.
func found(told, last *v1.ResourceRequirements, wanted v1.ResourceRequirements) v1.ResourceRequirements {
	if last == nil {
		last = &wanted
	}
	r := v1.ResourceRequirements{Limits: maps.Clone(told.Limits), Requests: maps.Clone(told.Requests)}
	if memory, ok := last.Requests[v1.ResourceMemory]; ok {
		if r.Requests == nil {
			r.Requests = v1.ResourceList{}
		}
		r.Requests[v1.ResourceMemory] = memory
	}
	request, ok := wanted.Requests[v1.ResourceCPU]
	if !ok {
		request = wanted.Limits[v1.ResourceCPU]
	}
	if sameCPU(r.Requests[v1.ResourceCPU], request, minMilliRequest) {
		r.Requests = with(r.Requests, wanted.Requests)
	}
	if limit := wanted.Limits[v1.ResourceCPU]; !limit.IsZero() && sameCPU(r.Limits[v1.ResourceCPU], limit, minMilliLimit) {
		r.Limits = with(r.Limits, wanted.Limits)
	}
	return r
}

func sameCPU(a, b resource.Quantity, least int64) bool {
	return max(a.MilliValue(), least) == max(b.MilliValue(), least)
}

// with is a list with the cpu of another one.
func with(list, other v1.ResourceList) v1.ResourceList {
	if list = maps.Clone(list); list == nil {
		list = v1.ResourceList{}
	}
	delete(list, v1.ResourceCPU)
	if cpu, ok := other[v1.ResourceCPU]; ok {
		list[v1.ResourceCPU] = cpu
	}
	return list
}

// restarts reports whether the container has to be started anew: its policy says so, or a
// limit is taken away, for which the CRI has no word.
func (r *resizing) restarts() bool {
	return slices.ContainsFunc(r.resized, r.needsRestart)
}

func (r *resizing) needsRestart(name v1.ResourceName) bool {
	return resizePolicy(r.spec, name) == v1.RestartContainer || r.limitRemoved(name)
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

// changes are the fields that differ and change.
func (r *resizing) changes() []diff.Change { return r.changesOf(r.resized) }

func (r *resizing) changesOf(names []v1.ResourceName) []diff.Change {
	var changes []diff.Change
	for _, name := range names {
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

// wantedResources are those that the manifest asks for, with the pod's own limits.
func wantedResources(pod *podstatus.Pod, spec *v1.Container) v1.ResourceRequirements {
	return withPodLimits(spec.Resources, pod.Manifest.Spec.Resources)
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

// podGrows reports whether the limits of the pod's containers come to more than they have:
// the pod's own cgroup then has to grow before them.
func podGrows(pod *podstatus.Pod) bool {
	return slices.ContainsFunc(resizable(), func(name v1.ResourceName) bool {
		var before, after resource.Quantity
		for _, ref := range podstatus.Lasting(pod.Manifest) {
			wanted := wantedResources(pod, ref.Container)
			had := applied{resources: wanted}
			if rec := pod.Newest(ref.Name); rec != nil {
				if known, ok := resourcesBefore(pod, ref.Container, rec); ok {
					had = known
				}
			} else if actuated := pod.Observed.Memory.Actuated; actuated != nil {
				had.resources = withPodLimits(actuated.Containers[ref.Name], actuated.Pod)
			}
			before.Add(had.resources.Limits[name])
			after.Add(wanted.Limits[name])
		}
		return after.Cmp(before) > 0
	})
}

// podResized reports whether the pod-level resources differ from what was applied.
func podResized(pod *podstatus.Pod) bool {
	var had *v1.ResourceRequirements
	switch actuated, last := pod.Observed.Memory.Actuated, appliedOf(pod); {
	case actuated != nil:
		had = actuated.Pod
	case last != nil:
		had = last.Pod.Spec.Resources
	default:
		return false
	}
	before, after := ptr.Deref(had, v1.ResourceRequirements{}), ptr.Deref(pod.Manifest.Spec.Resources, v1.ResourceRequirements{})
	return !equality.Semantic.DeepEqual(before.Limits, after.Limits) || !equality.Semantic.DeepEqual(before.Requests, after.Requests)
}
