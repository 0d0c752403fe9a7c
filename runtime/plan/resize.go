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

// resizable lists the two resources that can change in place, in the order in which the kubelet changes them.
func resizable() []v1.ResourceName {
	return []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU}
}

// resizing compares the cpu and memory of a running container in the manifest with the values applied last (kubelet:
// computePodResizeAction).
type resizing struct {
	spec            *v1.Container
	applied, wanted v1.ResourceRequirements
	// known reports whether the applied values are known. If not, the other fields are empty.
	known bool
	// recorded reports whether podctl recorded the applied values, and did not only find them.
	recorded bool
	// resized are the resources that differ. It is empty if there is no record of the applied values and the runtime
	// reports none.
	resized []v1.ResourceName
	// kept are resources that differ from the running ones and stay: the manifest was not edited, and only a restart
	// would change them.
	kept []v1.ResourceName
	// byKubelet reports whether a kubelet created the container.
	byKubelet bool
}

func resizingOf(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) *resizing {
	r := &resizing{}
	if r.applied, r.recorded, r.known = resourcesBefore(pod, spec, rec); !r.known {
		return r
	}
	r.spec, r.wanted, r.byKubelet = spec, wantedResources(pod, spec), rec.SpecHash == ""
	for _, name := range resizable() {
		switch {
		case !differ(r.wanted, r.applied, name):
		case !r.recorded && r.needsRestart(name) && !resourceEdited(pod, spec, name):
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

// resourcesBefore returns the resources of a running container, whether podctl recorded them, and whether they are
// known. The first known source counts: podctl's record of applied values, the report of the runtime (as for an adopted
// container), the manifest applied last. An unknown container that a kubelet created counts as having none (kubelet:
// computePodResizeAction), because an update to the same values changes nothing.
func resourcesBefore(
	pod *podstatus.Pod, spec *v1.Container, rec *model.Container,
) (resources v1.ResourceRequirements, recorded, known bool) {
	actuated := pod.Observed.Memory.Actuated
	if actuated != nil {
		if own, ok := actuated.Containers[spec.Name]; ok {
			return withPodLimits(own, actuated.Pod), true, true
		}
	}
	last := lastApplied(pod, spec)
	switch {
	case rec.Resources != nil:
		return found(rec.Resources, last, wantedResources(pod, spec)), false, true
	case actuated != nil:
		return withPodLimits(v1.ResourceRequirements{}, actuated.Pod), true, true
	case last != nil:
		return *last, true, true
	default:
		return resources, false, pod.Observed.Unrecorded && rec.SpecHash == ""
	}
}

// lastApplied returns a container's resources in the manifest applied last; nil if they are unknown or the manifest did
// not have the container.
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

// resourceEdited reports whether the manifest asks for another amount than the one applied last.
func resourceEdited(pod *podstatus.Pod, spec *v1.Container, name v1.ResourceName) bool {
	last := lastApplied(pod, spec)
	return last != nil && differ(*last, wantedResources(pod, spec), name)
}

// The smallest amounts of cpu that the kernel supports, in thousandths of a core (kubelet: cm.MinShares,
// cm.MinMilliCPULimit).
const (
	minMilliRequest = 2
	minMilliLimit   = 10
)

// found returns the resources that a runtime reports for a container. The runtime does not know the memory request, so
// found takes the one applied last. Cpu amounts that are equal for the kernel are replaced by the wanted ones.
func found(reported, last *v1.ResourceRequirements, wanted v1.ResourceRequirements) v1.ResourceRequirements {
	if last == nil {
		last = &wanted
	}
	r := v1.ResourceRequirements{Limits: maps.Clone(reported.Limits), Requests: maps.Clone(reported.Requests)}
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
	limit := wanted.Limits[v1.ResourceCPU]
	if !limit.IsZero() && sameCPU(r.Limits[v1.ResourceCPU], limit, minMilliLimit) {
		r.Limits = with(r.Limits, wanted.Limits)
	}
	return r
}

func sameCPU(a, b resource.Quantity, least int64) bool {
	return max(a.MilliValue(), least) == max(b.MilliValue(), least)
}

// with returns a list with the cpu of another one.
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

// restarts reports whether the resize requires a restart of the container: its policy asks for one, or a limit is
// removed, which the CRI cannot do.
func (r *resizing) restarts() bool {
	return slices.ContainsFunc(r.resized, r.needsRestart)
}

func (r *resizing) needsRestart(name v1.ResourceName) bool {
	return resizePolicy(r.spec, name) == v1.RestartContainer || r.limitRemoved(name)
}

// limitRemoved reports whether a limit is removed. For a container that a kubelet created it returns false, because a
// kubelet requests the removal from the runtime anyway.
func (r *resizing) limitRemoved(name v1.ResourceName) bool {
	before, after := r.applied.Limits[name], r.wanted.Limits[name]
	return !r.byKubelet && !before.IsZero() && after.IsZero()
}

// grows reports whether the container gets more than it has.
func (r *resizing) grows() bool { return raises(r.applied, r.wanted) }

// shrinks reports whether the container gets less than it has.
func (r *resizing) shrinks() bool { return raises(r.wanted, r.applied) }

// raises reports whether a limit is higher after a change.
func raises(from, to v1.ResourceRequirements) bool {
	return slices.ContainsFunc(resizable(), func(name v1.ResourceName) bool {
		before, after := from.Limits[name], to.Limits[name]
		return after.Cmp(before) > 0
	})
}

// changes returns the fields that differ and change.
func (r *resizing) changes() []diff.Change { return r.changesOf(r.resized) }

func (r *resizing) changesOf(names []v1.ResourceName) []diff.Change {
	var changes []diff.Change
	for _, name := range names {
		changes = append(changes, listChange("resources.limits", r.applied.Limits, r.wanted.Limits, name)...)
		changes = append(changes, listChange("resources.requests", r.applied.Requests, r.wanted.Requests, name)...)
	}
	return changes
}

// text explains why a resize restarts the container.
func (r *resizing) text() string {
	why := "its resizePolicy requires a restart"
	if slices.ContainsFunc(r.resized, r.limitRemoved) {
		why = "a limit cannot be removed in place"
	}
	return fmt.Sprintf("%s; %s", diff.Diff{Changes: r.changes()}.Text(), why)
}

// wantedResources returns the resources of a container in the manifest, with the pod's own limits.
func wantedResources(pod *podstatus.Pod, spec *v1.Container) v1.ResourceRequirements {
	return withPodLimits(spec.Resources, pod.Manifest.Spec.Resources)
}

// withPodLimits adds the pod's limits where a container has none of its own.
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
	return []diff.Change{{
		Path:   fmt.Sprintf("%s.%s", path, name),
		Before: quantity(before, name),
		After:  quantity(after, name),
	}}
}

func quantity(list v1.ResourceList, name v1.ResourceName) string {
	q, ok := list[name]
	if !ok {
		return ""
	}
	return q.String()
}

// podFirst reports whether the pod's own cgroup changes before its containers. If the pod gets more memory but less
// cpu, containers that change in place give up cpu first: cgroup v1 allows no container more cpu than its pod, but more
// memory.
func podFirst(pod *podstatus.Pod, inPlace bool) bool {
	return podGrows(pod) && (!inPlace || limitChange(pod, v1.ResourceCPU) >= 0)
}

// podGrows reports whether the limits of the pod's containers add up to more than before. The pod's own cgroup then has
// to grow before them.
func podGrows(pod *podstatus.Pod) bool {
	return slices.ContainsFunc(resizable(), func(name v1.ResourceName) bool { return limitChange(pod, name) > 0 })
}

// limitChange compares the sum of the containers' limits with the sum before: 1 for more, -1 for less.
func limitChange(pod *podstatus.Pod, name v1.ResourceName) int {
	var before, after resource.Quantity
	for _, ref := range podstatus.Lasting(pod.Manifest) {
		wanted := wantedResources(pod, ref.Container)
		had := wanted
		if rec := pod.Newest(ref.Name); rec != nil {
			if resources, _, known := resourcesBefore(pod, ref.Container, rec); known {
				had = resources
			}
		} else if actuated := pod.Observed.Memory.Actuated; actuated != nil {
			had = withPodLimits(actuated.Containers[ref.Name], actuated.Pod)
		}
		before.Add(had.Limits[name])
		after.Add(wanted.Limits[name])
	}
	return after.Cmp(before)
}

// podShrinks reports whether a container gets less than it has.
func podShrinks(pod *podstatus.Pod) bool {
	return slices.ContainsFunc(podstatus.Lasting(pod.Manifest), func(ref podspec.ContainerRef) bool {
		rec := pod.Newest(ref.Name)
		return rec != nil && resizingOf(pod, ref.Container, rec).shrinks()
	})
}

// podResized reports whether the pod-level resources differ from the applied ones, or the cgroup of the pod from its
// containers together. A container gets other resources without a resize if it starts again.
func podResized(pod *podstatus.Pod) bool {
	return podLevelResized(pod) || cgroupOutdated(pod)
}

func cgroupOutdated(pod *podstatus.Pod) bool {
	actuated, exists := pod.Observed.Memory.Actuated, pod.Observed.CgroupExists
	if actuated == nil || actuated.Cgroup == nil || exists == nil || !*exists {
		return false
	}
	wanted := podspec.Totals(pod.Manifest)
	return slices.ContainsFunc(resizable(), func(name v1.ResourceName) bool {
		return differ(wanted, *actuated.Cgroup, name)
	})
}

func podLevelResized(pod *podstatus.Pod) bool {
	var had *v1.ResourceRequirements
	switch actuated, last := pod.Observed.Memory.Actuated, appliedOf(pod); {
	case actuated != nil:
		had = actuated.Pod
	case last != nil:
		had = last.Pod.Spec.Resources
	default:
		return false
	}
	before := ptr.Deref(had, v1.ResourceRequirements{})
	after := ptr.Deref(pod.Manifest.Spec.Resources, v1.ResourceRequirements{})
	return !equality.Semantic.DeepEqual(before.Limits, after.Limits) ||
		!equality.Semantic.DeepEqual(before.Requests, after.Requests)
}
