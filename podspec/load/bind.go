package load

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
)

// bindVolumes binds the claims of the manifests to their PersistentVolumes on host paths, with the rules of the API
// server's controller (pv_controller.syncUnboundClaim, volume.FindMatchingVolume). A claim is bound to the volume that
// it names or that names it, or else to the smallest one that matches.
func (a *assembly) bindVolumes() {
	var volumes, claims []*object
	for _, o := range a.objects {
		switch {
		case o.damaged || o.extra:
		case o.volume != nil:
			volumes = append(volumes, o)
		case o.Claim != nil:
			claims = append(claims, o)
		}
	}
	taken := map[*object]bool{}
	bind := func(claim, volume *object) {
		if volume != nil {
			claim.Volume, taken[volume] = podspec.HostVolumeOf(volume.volume), true
		}
	}
	var others []*object
	for _, c := range claims {
		if c.Claim.Spec.VolumeName == "" && reservedFor(c, volumes) == nil {
			others = append(others, c)
		} else {
			volume, why := namedVolume(c, volumes)
			if taken[volume] {
				volume, why = nil, fmt.Sprintf("the PersistentVolume %s is bound to another claim", volume.meta.Name)
			}
			if volume == nil {
				note := c.report.Note(c.key(), "spec", why+". The claim is a directory of podctl's own")
				a.notes = append(a.notes, note)
			}
			bind(c, volume)
		}
	}
	isReserved := func(v *object) bool { return taken[v] || v.volume.Spec.ClaimRef != nil }
	for _, c := range others {
		bind(c, smallestVolume(c, slices.DeleteFunc(slices.Clone(volumes), isReserved)))
	}
	for _, v := range volumes {
		a.notes = append(a.notes, volumeNotes(v, taken[v])...)
	}
}

// reservedFor returns the volume that names a claim, or nil.
func reservedFor(claim *object, volumes []*object) *object {
	for _, v := range volumes {
		ref := v.volume.Spec.ClaimRef
		if ref != nil && ref.Name == claim.meta.Name &&
			cmp.Or(ref.Namespace, v1.NamespaceDefault) == claim.meta.Namespace {
			return v
		}
	}
	return nil
}

// namedVolume returns the volume that a claim names, or that names the claim, if they match. Otherwise it returns nil,
// and in why the reason if one is named.
func namedVolume(claim *object, volumes []*object) (volume *object, why string) {
	volume, name := reservedFor(claim, volumes), claim.Claim.Spec.VolumeName
	if name != "" {
		volume = nil
		if i := slices.IndexFunc(volumes, func(v *object) bool { return v.meta.Name == name }); i >= 0 {
			volume = volumes[i]
		}
	}
	switch {
	case volume == nil:
		return nil, fmt.Sprintf("the manifests have no PersistentVolume %s of type hostPath or local", name)
	case volume.volume.Spec.ClaimRef != nil && reservedFor(claim, []*object{volume}) == nil:
		return nil, fmt.Sprintf("the PersistentVolume %s is for another claim", volume.meta.Name)
	case mismatch(claim.Claim, volume.volume) != "":
		return nil, fmt.Sprintf("the PersistentVolume %s does not match: %s",
			volume.meta.Name, mismatch(claim.Claim, volume.volume))
	default:
		return volume, ""
	}
}

// mismatch returns the reason why a volume does not match a claim, or an empty string.
func mismatch(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) string {
	size, asked := volume.Spec.Capacity[v1.ResourceStorage], claim.Spec.Resources.Requests[v1.ResourceStorage]
	switch {
	case size.Cmp(asked) < 0:
		return fmt.Sprintf("it has %s, and the claim requests %s", size.String(), asked.String())
	case ptr.Deref(claim.Spec.StorageClassName, "") != volume.Spec.StorageClassName:
		return "its storage class differs"
	case volumeModeOf(claim.Spec.VolumeMode) != volumeModeOf(volume.Spec.VolumeMode):
		return "its volume mode differs"
	}
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, mode) {
			return fmt.Sprintf("it has no access mode %s", mode)
		}
	}
	return ""
}

// smallestVolume returns the smallest volume that matches a claim, or nil. If several have the same size, it returns
// the first.
func smallestVolume(claim *object, volumes []*object) *object {
	selector, err := metav1.LabelSelectorAsSelector(claim.Claim.Spec.Selector)
	if claim.Claim.Spec.Selector == nil {
		selector = labels.Everything()
	}
	if err != nil {
		return nil
	}
	var smallest *object
	for _, v := range volumes {
		if mismatch(claim.Claim, v.volume) != "" || !selector.Matches(labels.Set(v.meta.Labels)) {
			continue
		}
		if smallest == nil || storageOf(v.volume).Cmp(*storageOf(smallest.volume)) < 0 {
			smallest = v
		}
	}
	return smallest
}

func storageOf(volume *v1.PersistentVolume) *resource.Quantity {
	size := volume.Spec.Capacity[v1.ResourceStorage]
	return &size
}

// volumeNotes returns notes for the fields of a volume without effect.
func volumeNotes(v *object, bound bool) (notes []document.Note) {
	note := func(path, text string) { notes = append(notes, v.report.Note(v.meta.Name, path, text)) }
	spec := &v.volume.Spec
	switch {
	case !bound:
		note("metadata.name", "no claim of the manifests is bound to this PersistentVolume")
		return notes
	case spec.NodeAffinity != nil:
		note("spec.nodeAffinity", "has no effect: podctl runs pods on one machine")
	}
	if policy := spec.PersistentVolumeReclaimPolicy; policy != "" && policy != v1.PersistentVolumeReclaimRetain {
		note("spec.persistentVolumeReclaimPolicy", "has no effect: podctl never removes the data of a PersistentVolume")
	}
	if len(spec.MountOptions) > 0 {
		note("spec.mountOptions", "has no effect: the path is mounted as it is")
	}
	return notes
}

// volumeModeOf returns the volume mode of a claim or a volume, or the default.
func volumeModeOf(mode *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	return ptr.Deref(mode, v1.PersistentVolumeFilesystem)
}

// checkVolume refuses a PersistentVolume that is not a directory of this machine.
func checkVolume(r *report, volume *v1.PersistentVolume) {
	if mode := volume.Spec.VolumeMode; mode != nil && *mode == v1.PersistentVolumeBlock {
		r.refuse(document.ClassUnsupported, "spec.volumeMode",
			"a PersistentVolume is a directory here, not a block device")
	}
	if bound := podspec.HostVolumeOf(volume); bound != nil {
		path := "spec.hostPath.path"
		if volume.Spec.Local != nil {
			path = "spec.local.path"
		}
		r.checkName(path, bound.Path, hostPath)
	}
}
