package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// definitionChanged reports whether a container no longer is what the manifest
// says, and field by field why. A container that podctl made is judged by the
// whole definition, one that a kubelet made by what is known of it (foundChanged).
func definitionChanged(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (bool, diff.Diff) {
	if !spechash.Known(rec.SpecHash) {
		return foundChanged(pod, spec, rec)
	}
	if digest.Compare(rec.SpecHash, spechash.Container(pod.Desired, spec)) != digest.Different {
		return false, diff.Diff{}
	}
	return true, containerChanges(pod, spec, rec)
}

// editedSince reports whether the manifest of a container that has ended is known to
// be another now. A record without a readable hash shows nothing of the kind.
func editedSince(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (bool, diff.Diff) {
	if rec.Hash == "" && rec.SpecHash == "" {
		return false, diff.Diff{}
	}
	return definitionChanged(pod, spec, rec)
}

// containerChanges compares what the container was made from with what is
// wanted: its own record of the definition, or the manifest applied last.
func containerChanges(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) diff.Diff {
	after := spechash.ContainerProjection(pod.Desired, spec)
	if before, ok := diff.Decode(rec.Spec); ok {
		return diff.Trees(before, after)
	}
	applied := appliedOf(pod)
	if applied == nil {
		return diff.Diff{}
	}
	if ref, ok := podspec.FindContainer(applied.Pod, spec.Name); ok {
		return diff.Trees(spechash.ContainerProjection(applied, ref.Container), after)
	}
	return diff.Diff{}
}

// sandboxChanges compares what the latest sandbox was made from with what is wanted.
func sandboxChanges(pod *podstatus.Pod) diff.Diff {
	after := spechash.SandboxProjection(pod.Desired)
	if before, ok := diff.Decode(pod.Sandboxes[0].Spec); ok {
		return diff.Trees(before, after)
	}
	if applied := appliedOf(pod); applied != nil {
		return diff.Trees(spechash.SandboxProjection(applied), after)
	}
	return diff.Diff{}
}

// appliedOf is the manifest that was applied last; nil when it is unknown.
func appliedOf(pod *podstatus.Pod) *podspec.Desired {
	if applied := pod.Observed.Memory.Applied; applied != nil && applied.Pod != nil {
		return applied
	}
	return nil
}
