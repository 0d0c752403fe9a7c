package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podctl/podctl/podspec/quote"
)

// HostVolume is a PersistentVolume on a path of the host.
type HostVolume struct {
	// Name is the name of the PersistentVolume.
	Name string `json:"name"`
	// Path is an absolute path. Type is its required type, as in a hostPath volume.
	Path string          `json:"path"`
	Type v1.HostPathType `json:"type,omitempty"`
	// Local is set for a local volume of the API server. It belongs to its pods: it gets their fsGroup.
	Local bool `json:"local,omitempty"`
}

// HostVolumeOf returns the path of a PersistentVolume of type hostPath or local, or nil for other types. The kubelet
// mounts a local volume only if the path exists (localVolumeMounter.SetUpAt).
func HostVolumeOf(volume *v1.PersistentVolume) *HostVolume {
	switch source := &volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return &HostVolume{Name: volume.Name, Path: source.HostPath.Path, Type: HostPathType(source.HostPath)}
	case source.Local != nil:
		return &HostVolume{Name: volume.Name, Path: source.Local.Path, Type: v1.HostPathDirectory}
	}
	return nil
}

// BoundTo returns the path of the host to which the claim of a volume is bound. It is nil if there is none.
func BoundTo(d *Desired, vol *v1.Volume) *HostVolume {
	if vol == nil || !isClaim(vol) {
		return nil
	}
	return d.Objects.Volumes[ClaimName(d.Pod, vol)]
}

// IsUnbound reports whether a volume has a claim of the API server that is not bound, is unknown or cannot be used.
func IsUnbound(d *Desired, vol *v1.Volume) bool {
	return vol != nil && isClaim(vol) && d.FromCluster() && BoundTo(d, vol) == nil
}

// Volume returns the volume as it is mounted: a claim bound to a path of the host becomes a hostPath. An unbound claim
// of the API server becomes a volume without a source, because it is not one of podctl's own.
func (d *Desired) Volume(vol *v1.Volume) *v1.Volume {
	if IsUnbound(d, vol) {
		return &v1.Volume{Name: vol.Name}
	}
	bound := BoundTo(d, vol)
	if bound == nil {
		return vol
	}
	path := &v1.HostPathVolumeSource{Path: bound.Path, Type: &bound.Type}
	return &v1.Volume{Name: vol.Name, VolumeSource: v1.VolumeSource{HostPath: path}}
}

// ClaimName returns the name of the claim of a volume: that in the volume, or of a generic ephemeral volume the claim
// that the cluster creates for the pod (kubelet: ephemeral.VolumeClaimName). It is empty for other volumes.
func ClaimName(pod *v1.Pod, vol *v1.Volume) string {
	switch {
	case vol.PersistentVolumeClaim != nil:
		return vol.PersistentVolumeClaim.ClaimName
	case vol.Ephemeral != nil:
		return pod.Name + "-" + vol.Name
	}
	return ""
}

// ClaimVolumes returns the volumes of a pod with a claim, in manifest order.
func ClaimVolumes(pod *v1.Pod, claim string) (volumes []*v1.Volume) {
	for i := range pod.Spec.Volumes {
		if vol := &pod.Spec.Volumes[i]; isClaim(vol) && ClaimName(pod, vol) == claim {
			volumes = append(volumes, vol)
		}
	}
	return volumes
}

func isClaim(vol *v1.Volume) bool { return vol.PersistentVolumeClaim != nil || vol.Ephemeral != nil }

// ClaimFailure returns a kubelet's text for a volume whose claim cannot be used (kubelet: WaitForAttachAndMount).
func ClaimFailure(volume, text string) string {
	return fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], "+
		"failed to process volumes=[%s]: %s", volume, volume, text)
}

// missingClaims returns the claim of a volume of a pod of the API server, if it is not bound to a path of this machine
// or cannot be used. For other volumes it returns nothing.
func missingClaims(d *Desired, vol *v1.Volume, path string) []MissingReference {
	if !IsUnbound(d, vol) {
		return nil
	}
	name := ClaimName(d.Pod, vol)
	out := MissingReference{Kind: KindClaim, Name: name, Volume: vol.Name, Path: path}
	why := d.Unread[ObjectName{KindClaim, name}]
	subject := fmt.Sprintf("claim %s/%s%s", d.Pod.Namespace, shownClaim(name), out.of())
	if why.Status != "" {
		out.Detail, out.Status = subject+" cannot be used: "+why.Reason, why.Status
		return []MissingReference{out}
	}
	out.Detail = subject + " is unknown: " + why.Error()
	reason := why.Reason
	if reason == "" {
		reason = "no answer yet"
	}
	out.Status = ClaimFailure(vol.Name, ClaimError(d.Pod.Namespace, name,
		"failed to fetch PVC from API server: "+reason))
	return []MissingReference{out}
}

// ClaimError returns a kubelet's text for a claim that cannot be used (kubelet: createVolumeSpec).
func ClaimError(namespace, name, text string) string {
	return fmt.Sprintf("error processing PVC %s/%s: %s", namespace, shownClaim(name), text)
}

// shownClaim returns the name of a claim for a message. A pod may name a claim by any text.
func shownClaim(name string) string {
	if len(name) > validation.DNS1123SubdomainMaxLength {
		name = name[:validation.DNS1123SubdomainMaxLength] + "…"
	}
	return quote.OneLine(name)
}
