package executor

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// resizer records the resizes of a pod of the API server in its checkpoint.
type resizer struct{ *checkpointer }

// begin records the resize of a pod of the API server that waits or begins with this pass, with the events of a
// kubelet. before is the version that was applied before; nil if there is none.
func (x resizer) begin(before *v1.Pod) {
	c, pending := x.checkpoint, x.plan.PendingResize
	if pending != nil && (c.PendingResize == nil || c.PendingResize.Generation != pending.Generation) {
		x.report.record("ResizeDeferred", "", statusText(resizeHold(x.plan)))
	}
	c.PendingResize = pending
	if before == nil || !x.desired.FromCluster() || podspec.WithResources(x.desired, before) == x.desired {
		return
	}
	c.Resizing = &model.Resizing{Generation: x.desired.Pod.Generation}
	x.record("ResizeStarted", "Pod resize started")
}

// resizeHold returns the hold of a resize that waits. The plan has one if it has a PendingResize and was not made from
// podctl's own copy of the pod.
func resizeHold(p *plan.Plan) *plan.Hold {
	i := slices.IndexFunc(p.Holds, func(h plan.Hold) bool { return h.Resize != nil })
	return &p.Holds[i]
}

// record records a normal event about the resize that is recorded in the checkpoint.
func (x resizer) record(reason, what string) {
	text := model.ResizeText(what, &x.desired.Pod.Spec, x.checkpoint.Resizing.Generation, "")
	x.report.recordBy(func(r *events.Recorder) bool {
		r.Normal(x.now(), reason, "", text)
		return true
	})
}

// end records that a resize of a pod of the API server has ended or failed, with the events of a kubelet (kubelet:
// SyncPod). It runs before the events of the pass are written.
func (x resizer) end(r *results) {
	c := x.checkpoint
	if x.desired == nil || !x.desired.FromCluster() || x.plan.Unapplied() || x.plan.Eviction != nil {
		return
	}
	x.noteResizedPod(r)
	now := *x.snapshot
	now.Checkpoint = c
	switch resizing := podstatus.Resizing(now.Input(x.plan.Pod, x.desired, plan.Options{}).State()); {
	case !resizing && c.Resizing != nil:
		x.record("ResizeCompleted", "Pod resize completed")
		c.Resizing, x.resized = nil, true
	case resizing && c.Resizing == nil:
		c.Resizing, x.resized = &model.Resizing{Generation: x.desired.Pod.Generation}, true
		x.fail(r.failed)
	case resizing:
		x.fail(r.failed)
	}
}

// fail records why a resize has failed.
func (x resizer) fail(failed []StepError) {
	i := slices.IndexFunc(failed, func(f StepError) bool { return resizes(f.Step) })
	if i < 0 {
		return
	}
	text, generation := kubeletText(failed[i].Err), x.checkpoint.Resizing.Generation
	if x.checkpoint.Resizing.Error == text {
		return
	}
	x.checkpoint.Resizing, x.resized = &model.Resizing{Generation: generation, Error: text}, true
	x.report.record("ResizeError", "", model.ResizeText("Pod resize error", &x.desired.Pod.Spec, generation, text))
}

// resizes reports whether a step changes resources in place.
func resizes(s *plan.Step) bool { return s.Kind == plan.UpdateContainer || s.Kind == plan.UpdatePod }

// checkMemory returns an error if the new memory limit of a container is lower than its current one and not above its
// usage, because the kernel would end its processes (kubelet: validateMemoryResizeAction). An unknown usage is
// allowed.
func (x *starter) checkMemory(ctx context.Context, ref podspec.ContainerRef, id string) error {
	before := x.actuated(ref.Name)
	limit, current := ref.Resources.Limits.Memory().Value(), before.Limits.Memory().Value()
	if limit == 0 || current != 0 && limit >= current {
		return nil
	}
	reply, err := x.client.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{
		Filter: &runtimeapi.ContainerStatsFilter{Id: id},
	})
	if err != nil {
		return fmt.Errorf("unable to read memory usage for pod %q: %w", x.plan.Pod.Full(), err)
	}
	for _, stats := range reply.GetStats() {
		memory := stats.GetMemory()
		used := max(memory.GetUsageBytes().GetValue(), memory.GetWorkingSetBytes().GetValue())
		if used >= uint64(limit) {
			return fmt.Errorf("cannot decrease memory limits: attempting to set container %q memory limit (%d) "+
				"below current usage (%d)", ref.Name, limit, used)
		}
	}
	return nil
}

// actuated returns the resources that were applied to a container last; empty if they are unknown.
func (x *starter) actuated(container string) v1.ResourceRequirements {
	if a := x.observed.Memory.Actuated; a != nil {
		return a.Containers[container]
	}
	return v1.ResourceRequirements{}
}
