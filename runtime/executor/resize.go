package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// beginResize records the resize of a pod of the API server that waits or begins with this pass, with the events of a
// kubelet. before is the version that was applied before; nil if there is none.
func (x *checkpointer) beginResize(before *v1.Pod) {
	c, pending := x.record, x.plan.PendingResize
	if pending != nil && (c.PendingResize == nil || c.PendingResize.Generation != pending.Generation) {
		x.report.record("ResizeDeferred", "", statusText(resizeHold(x.plan)))
	}
	c.PendingResize = pending
	if before == nil || !x.desired.FromCluster() || podspec.WithResources(x.desired, before) == x.desired {
		return
	}
	c.Resizing = &model.Resizing{Generation: x.desired.Pod.Generation}
	x.recordResize("ResizeStarted", "Pod resize started")
}

// resizeHold returns the hold of a resize that waits. The plan has one if it has a PendingResize and was not made from
// podctl's own copy of the pod.
func resizeHold(p *plan.Plan) *plan.Hold {
	i := slices.IndexFunc(p.Holds, func(h plan.Hold) bool { return h.Resize != nil })
	return &p.Holds[i]
}

// recordResize records a normal event about the resize that is recorded in the checkpoint.
func (x *checkpointer) recordResize(reason, what string) {
	text := model.ResizeText(what, &x.desired.Pod.Spec, x.record.Resizing.Generation, "")
	x.report.recordBy(func(r *events.Recorder) bool {
		r.Normal(x.now(), reason, "", text)
		return true
	})
}

// endResize records that a resize of a pod of the API server has ended or failed, with the events of a kubelet
// (kubelet: SyncPod). It runs before the events of the pass are written.
func (x *checkpointer) endResize(r *results) {
	c := x.record
	if x.desired == nil || !x.desired.FromCluster() || x.plan.Unapplied() || x.plan.Eviction != nil {
		return
	}
	x.noteResizedPod(r)
	now := *x.snapshot
	now.Checkpoint = c
	switch resizing := podstatus.Resizing(now.Input(x.plan.Pod, x.desired, plan.Options{}).State()); {
	case !resizing && c.Resizing != nil:
		x.recordResize("ResizeCompleted", "Pod resize completed")
		c.Resizing, x.resized = nil, true
	case resizing && c.Resizing == nil:
		c.Resizing, x.resized = &model.Resizing{Generation: x.desired.Pod.Generation}, true
		x.failResize(r.failed)
	case resizing:
		x.failResize(r.failed)
	}
}

// noteResizedPod records the pod's own resources once all changes that depend on them are done: of the pod, and of the
// containers that change in place or are replaced. Until then the resize is pending.
func (x *checkpointer) noteResizedPod(r *results) {
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		if (resizes(s) || s.Kind == plan.StopContainer) && r.undone(s) {
			return
		}
	}
	if updatesPod(x.plan) {
		x.record.Actuated.Pod = x.desired.Pod.Spec.Resources
	}
}

// failResize records why a resize has failed.
func (x *checkpointer) failResize(failed []StepError) {
	i := slices.IndexFunc(failed, func(f StepError) bool { return resizes(f.Step) })
	if i < 0 {
		return
	}
	text, generation := kubeletText(failed[i].Err), x.record.Resizing.Generation
	if x.record.Resizing.Error == text {
		return
	}
	x.record.Resizing, x.resized = &model.Resizing{Generation: generation, Error: text}, true
	x.report.record("ResizeError", "", model.ResizeText("Pod resize error", &x.desired.Pod.Spec, generation, text))
}

// resizes reports whether a step changes resources in place.
func resizes(s *plan.Step) bool { return s.Kind == plan.UpdateContainer || s.Kind == plan.UpdatePod }

// resize changes the resources of a running container or of the pod's cgroup.
func (x *execution) resize(ctx context.Context, s *plan.Step) error {
	if err := x.memory.check(ctx); err != nil {
		return model.WithReason(model.ResizePodInPlaceError, err)
	}
	if s.Kind == plan.UpdatePod {
		return x.prepare.applyCgroup()
	}
	return x.start.updateContainer(ctx, s)
}

// memoryCheck checks the new memory limits of a pod of the API server once, before its first resize in a pass. So no
// resize begins if one is impossible.
type memoryCheck struct {
	*subject

	once sync.Once
	err  error
}

// check returns an error if a new limit is lower than the current one and not above the usage, because the kernel would
// end processes (kubelet: validateMemoryResizeAction). An unknown usage of the pod is allowed.
func (x *memoryCheck) check(ctx context.Context) error {
	if !x.desired.FromCluster() {
		return nil
	}
	x.once.Do(func() {
		errs := []error{x.checkPod()}
		for i := range x.plan.Steps {
			if s := &x.plan.Steps[i]; s.Kind == plan.UpdateContainer {
				errs = append(errs, x.checkContainer(ctx, s))
			}
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			x.err = fmt.Errorf("cannot decrease memory limits: %w", err)
		}
	})
	return x.err
}

// checkPod checks the limit of the pod's cgroup.
func (x *memoryCheck) checkPod() error {
	limit := criconfig.PodCgroup(x.desired.Pod, x.node()).Memory
	now, _ := x.cgroups.Usage(criconfig.CgroupParent(x.desired.Pod, x.node())) // Without an answer, it is unknown.
	if limit == nil || now.Memory == nil || now.Limit != nil && uint64(*limit) >= *now.Limit {
		return nil
	}
	return belowUsage("pod", *limit, *now.Memory)
}

// checkContainer checks the limit of a running container.
func (x *memoryCheck) checkContainer(ctx context.Context, s *plan.Step) error {
	ref, err := x.container(s)
	if err != nil {
		return err
	}
	limit := criconfig.Resources(x.desired.Pod, ref, x.node()).GetMemoryLimitInBytes()
	if current := x.currentLimit(ref.Name); limit == 0 || current != 0 && limit >= current {
		return nil
	}
	reply, err := x.client.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{
		Filter: &runtimeapi.ContainerStatsFilter{Id: s.ContainerID},
	})
	if err != nil {
		return fmt.Errorf("unable to read memory usage for pod %q: %w", x.plan.Pod.Full(), err)
	}
	for _, stats := range reply.GetStats() {
		memory := stats.GetMemory()
		used := max(memory.GetUsageBytes().GetValue(), memory.GetWorkingSetBytes().GetValue())
		return belowUsage(fmt.Sprintf("container %q", ref.Name), limit, used)
	}
	return nil
}

// currentLimit returns the memory limit that was applied to a container last: its own, or that of the pod. It is 0 if
// there is none or if it is unknown.
func (x *memoryCheck) currentLimit(container string) int64 {
	a := x.observed.Memory.Actuated
	if a == nil {
		return 0
	}
	own := a.Containers[container]
	if limit := own.Limits.Memory().Value(); limit != 0 || a.Pod == nil {
		return limit
	}
	return a.Pod.Limits.Memory().Value()
}

// belowUsage returns the error of a kubelet if a limit is not above the usage.
func belowUsage(of string, limit int64, used uint64) error {
	if used < uint64(limit) {
		return nil
	}
	return fmt.Errorf("attempting to set %s memory limit (%d) below current usage (%d)", of, limit, used)
}
