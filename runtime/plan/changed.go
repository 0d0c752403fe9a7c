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

// foundChanged judges a container that podctl did not make. The kubelet's hash says whether
// it has the name and the image of the manifest. One without a hash, or with that of an
// older kubelet, which cannot be computed, is adopted unless it runs another image: from then
// on it is compared with the definition that it was adopted with (kubelet: containerChanged,
// which takes such a container for changed).
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

// otherImage is the image that a container was made of, if it is known to be another one than
// the manifest's: its hash is of that name, or the runtime reports a name that is not one of
// the manifest's image.
func otherImage(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) (string, bool) {
	names := []string{rec.Image}
	if last := appliedOf(pod); last != nil {
		if ref, ok := podspec.FindContainer(last.Pod, spec.Name); ok {
			names = append(names, ref.Image)
		}
	}
	for _, name := range names {
		if rec.Hash != "" && name != spec.Image && spechash.Kubelet(&v1.Container{Name: spec.Name, Image: name}) == rec.Hash {
			return name, true
		}
	}
	if rec.Image == "" || rec.Image == spec.Image || strings.HasPrefix(rec.Image, "sha256:") {
		return "", false
	}
	image := pod.Observed.Images[spec.Image]
	return rec.Image, image.ID == "" || rec.ImageID == "" || image.Other(rec.ImageID)
}

// definitionOf is the hash of the definition that a container was adopted with. Without one
// it is adopted now, with the manifest's.
func definitionOf(pod *podstatus.Pod, spec *v1.Container, rec *model.Container) string {
	if hash := pod.Observed.Memory.Adopted[rec.ID]; hash != "" {
		return hash
	}
	return spechash.Container(pod.Desired, spec)
}

// unreadable reports whether nothing that a container bears says what it was made of.
func unreadable(spec *v1.Container, rec *model.Container) bool {
	return !spechash.Known(rec.SpecHash) && rec.Hash != spechash.Kubelet(spec)
}

// adoptions are the definitions of the containers that run and do not bear a readable one
// themselves, by their ids: those with which they were adopted, and for those that are kept
// now the manifest's. The executor keeps them.
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

// adopts reports whether the pass keeps a container of which nobody knew what it was made of.
func (p *Plan) adopts(memory *model.Memory) bool {
	for id := range p.Adopted {
		if memory.Adopted[id] == "" {
			return true
		}
	}
	return false
}

// foundResources are the resources of the containers that run and of which podctl has no
// record, by name. It is nil where the runtime reports others than the manifest's that stay:
// they are to be looked at again, and are no record of what was applied.
func foundResources(pod *podstatus.Pod) map[string]*v1.ResourceRequirements {
	resources := map[string]*v1.ResourceRequirements{}
	for _, ref := range podspec.Containers(pod.Manifest) {
		rec := pod.Newest(ref.Name)
		if rec == nil || rec.State != model.Running {
			continue
		}
		before, ok := resourcesBefore(pod, ref.Container, rec)
		switch kept := len(resizingOf(pod, ref.Container, rec).kept) > 0; {
		case !ok || before.recorded:
		case !kept:
			resources[ref.Name] = &before.resources
		case rec.Resources != nil:
			resources[ref.Name] = nil
		}
	}
	return resources
}
