package plan

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// definitionChanged reports whether a container differs from the manifest, and in which fields. A container that podctl
// created is compared by its whole definition. One that a kubelet created is compared by its hash and image
// (foundChanged).
func definitionChanged(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (bool, diff.Diff) {
	if !spechash.Known(rec.SpecHash) {
		return foundChanged(pod, spec, rec)
	}
	if digest.Compare(rec.SpecHash, spechash.Container(pod.Desired, spec)) != digest.Different {
		return false, diff.Diff{}
	}
	return true, containerChanges(pod, spec, rec)
}

// editedSince reports whether the manifest of an exited container is known to have changed. It returns false for a
// record without a readable hash.
func editedSince(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (bool, diff.Diff) {
	if rec.Hash == "" && rec.SpecHash == "" {
		return false, diff.Diff{}
	}
	return definitionChanged(pod, spec, rec)
}

// containerChanges compares the wanted definition with the one the container was created from: its own record, or else
// the manifest applied last.
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

// sandboxChanges compares the wanted definition with the one the latest sandbox was created from.
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

// appliedOf returns the manifest applied last; nil if it is unknown.
func appliedOf(pod *podstatus.Pod) *podspec.Desired {
	if applied := pod.Observed.Memory.Applied; applied != nil && applied.Pod != nil {
		return applied
	}
	return nil
}

// foundChanged compares a container that podctl did not create. The kubelet's hash covers the name and image of the
// manifest. Some containers have no hash, or one by an older kubelet that cannot be computed. podctl adopts such a
// container unless it runs another image, and compares it with the adopted definition from then on. A kubelet would
// restart it (containerChanged).
func foundChanged(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (bool, diff.Diff) {
	before, other := otherImage(pod, spec, rec)
	switch {
	case rec.Hash == spechash.Kubelet(spec):
		return false, diff.Diff{}
	case other:
		return true, diff.Diff{Changes: []diff.Change{{Path: "image", Before: before, After: spec.Image}}}
	}
	if digest.Compare(definitionOf(pod, spec, rec), spechash.Container(pod.Desired, spec)) != digest.Different {
		return false, diff.Diff{}
	}
	return true, containerChanges(pod, spec, rec)
}

// otherImage returns the image that a container was created from, if it is known to differ from the manifest's: the
// hash belongs to that name, or the runtime reports a name that does not belong to the manifest's image.
func otherImage(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (string, bool) {
	names := []string{rec.Image}
	if last := appliedOf(pod); last != nil {
		if ref, ok := podspec.FindContainer(last.Pod, spec.Name); ok {
			names = append(names, ref.Image)
		}
	}
	for _, name := range names {
		if rec.Hash == "" || name == spec.Image {
			continue
		}
		if spechash.Kubelet(&v1.Container{Name: spec.Name, Image: name}) == rec.Hash {
			return name, true
		}
	}
	if rec.Image == "" || rec.Image == spec.Image || strings.HasPrefix(rec.Image, "sha256:") {
		return "", false
	}
	image := pod.Observed.Images[spec.Image]
	return rec.Image, image.ID == "" || rec.ImageID == "" || image.Other(rec.ImageID)
}

// definitionOf returns the hash of the definition that a container was adopted with. A container without one is adopted
// now, with the definition of the manifest.
func definitionOf(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) string {
	if hash := pod.Observed.Memory.Adopted[rec.ID]; hash != "" {
		return hash
	}
	return spechash.Container(pod.Desired, spec)
}

// unreadable reports whether no hash of a container identifies the definition that it was created from.
func unreadable(spec *v1.Container, rec *model.Container) bool {
	return !spechash.Known(rec.SpecHash) && rec.Hash != spechash.Kubelet(spec)
}

// adoptions returns the hashes of the adopted definitions by container ID. It covers running containers without a
// readable definition of their own. A container adopted now gets the definition of the manifest. The executor records
// the hashes.
func adoptions(pod *podstatus.Pod, s steps) map[string]string {
	var hashes map[string]string
	for _, rec := range pod.Containers {
		ref, ok := podspec.FindContainer(pod.Manifest, rec.Name)
		if !ok || rec.State != model.Running {
			continue
		}
		hash := pod.Observed.Memory.Adopted[rec.ID]
		if hash == "" && unreadable(ref.Container, rec) && !s.does(StopContainer, rec.ID) {
			hash = spechash.Container(pod.Desired, ref.Container)
		}
		if hash != "" {
			if hashes == nil {
				hashes = map[string]string{}
			}
			hashes[rec.ID] = hash
		}
	}
	return hashes
}

// adopts reports whether the pass adopts a container whose definition was unknown.
func (p *Plan) adopts(memory *model.Memory) bool {
	for id := range p.Adopted {
		if memory.Adopted[id] == "" {
			return true
		}
	}
	return false
}

// foundResources returns the resources of running containers without a record, by container name. A value is nil if the
// runtime reports resources that differ from the manifest's and stay: they must be compared again and do not prove what
// was applied.
func foundResources(pod *podstatus.Pod) map[string]*v1.ResourceRequirements {
	resources := map[string]*v1.ResourceRequirements{}
	for _, ref := range podspec.Containers(pod.Manifest) {
		rec := pod.Newest(ref.Name)
		if rec == nil || rec.State != model.Running {
			continue
		}
		change := resizingOf(pod, ref.Container, rec)
		switch kept := len(change.kept) > 0; {
		case !change.known || change.recorded:
		case !kept && len(change.resized) == 0:
			// A runtime also reports limits of the pod, and defaults of a kubelet, which are not the container's own.
			resources[ref.Name] = ref.Resources.DeepCopy()
		case !kept:
			resources[ref.Name] = &change.applied
		case rec.Resources != nil:
			resources[ref.Name] = nil
		}
	}
	return resources
}
