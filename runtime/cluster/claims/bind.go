package claims

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/quote"
)

// protection is the finalizer of a claim that a pod may use although it is being deleted (kubelet:
// util.PVCProtectionFinalizer).
const protection = "kubernetes.io/pvc-protection"

// use is what a pod asks for: the data of a claim in its volumes. The first volume is in the messages.
type use struct {
	pod     *v1.Pod
	claim   string
	volumes []*v1.Volume
}

// fault is the reason why a pod cannot use a claim. status is the text of a kubelet.
type fault struct{ reason, status string }

// claimFault returns a fault of the claim, before its volume is read.
func (u use) claimFault(reason string) *fault {
	return &fault{reason, podspec.ClaimFailure(u.volumes[0].Name, podspec.ClaimError(u.pod.Namespace, u.claim, reason))}
}

// mountFault returns a fault of a phase of a mount (kubelet: VolumeToMount.GenerateError).
func mountFault(phase, volume, reason string) *fault {
	return &fault{reason, fmt.Sprintf("%s for volume %q : %s", phase, volume, reason)}
}

// textMax limits a text in bytes. A kubelet limits the message of an event to 1024.
const textMax = 1000

// unusable returns the fault for the object of the claim.
func (f *fault) unusable() *podspec.UnreadError {
	return &podspec.UnreadError{Reason: shown(f.reason), Status: shown(f.status)}
}

// shown returns a text on one line.
func shown(text string) string {
	if len(text) > textMax {
		text = strings.ToValidUTF8(text[:textMax], "") + "…"
	}
	return quote.OneLine(text)
}

// checkClaim returns the reason why a pod cannot use a claim (kubelet: getPVCExtractPV, ephemeral.VolumeIsForPod); nil
// if it can.
func (u use) checkClaim(claim *v1.PersistentVolumeClaim) *fault {
	switch {
	case claim.DeletionTimestamp != nil && !slices.Contains(claim.Finalizers, protection):
		return u.claimFault("PVC is being deleted")
	case claim.Status.Phase != v1.ClaimBound:
		return u.claimFault("PVC is not bound")
	case claim.Spec.VolumeName == "":
		return u.claimFault("PVC has empty pvc.Spec.VolumeName")
	}
	isEphemeral := func(vol *v1.Volume) bool { return vol.Ephemeral != nil }
	if i := slices.IndexFunc(u.volumes, isEphemeral); i >= 0 && !metav1.IsControlledBy(claim, u.pod) {
		text := fmt.Sprintf("PVC %s/%s was not created for pod %s/%s (pod is not owner)",
			claim.Namespace, claim.Name, u.pod.Namespace, u.pod.Name)
		return &fault{text, podspec.ClaimFailure(u.volumes[i].Name, text)}
	}
	return nil
}

// bind returns the path of a volume, or why the pod cannot use it (kubelet: getPVSpec, createVolumeSpec,
// GenerateMountVolumeFunc). labels are those of the Node.
func (u use) bind(
	claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume, labels map[string]string,
) (*podspec.HostVolume, *fault) {
	for _, check := range []*fault{
		u.checkReference(claim, volume), u.checkMode(volume), checkType(volume), checkAffinity(volume, labels),
		checkOptions(volume),
	} {
		if check != nil {
			return nil, check
		}
	}
	if local := volume.Spec.Local; local != nil {
		return &podspec.HostVolume{Name: volume.Name, Path: local.Path, Local: true}, nil
	}
	return podspec.HostVolumeOf(volume), nil
}

// checkReference checks that the volume is bound to the claim, too.
func (u use) checkReference(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) *fault {
	switch ref := volume.Spec.ClaimRef; {
	case ref == nil:
		return u.claimFault(fmt.Sprintf("found PV object %s but it has a nil pv.Spec.ClaimRef "+
			"indicating it is not yet bound to the claim", volume.Name))
	case ref.UID != claim.UID:
		return u.claimFault(fmt.Sprintf("found PV object %s but its pv.Spec.ClaimRef.UID %s "+
			"does not point to claim.UID %s", volume.Name, ref.UID, claim.UID))
	}
	return nil
}

// checkMode refuses a block device, because podctl mounts volumes only.
func (u use) checkMode(volume *v1.PersistentVolume) *fault {
	mode := ptr.Deref(volume.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	if mode == v1.PersistentVolumeFilesystem {
		return nil
	}
	name := u.volumes[0].Name
	text := fmt.Sprintf("volume %s has volumeMode %s, but is specified in volumeMounts", name, mode)
	return &fault{text, podspec.ClaimFailure(name, text)}
}

// checkType refuses types that are not a path of this machine.
func checkType(volume *v1.PersistentVolume) *fault {
	if volume.Spec.HostPath != nil || volume.Spec.Local != nil {
		return nil
	}
	text := "podctl does not support volumes of type " + typeOf(volume)
	if csi := volume.Spec.CSI; csi != nil {
		text += fmt.Sprintf(" (driver %.200q)", csi.Driver)
	}
	return mountFault("MountVolume.FindPluginBySpec failed", volume.Name, text)
}

// typeOf returns the field of a volume's source.
func typeOf(volume *v1.PersistentVolume) string {
	source := reflect.ValueOf(volume.Spec.PersistentVolumeSource)
	for field, value := range source.Fields() {
		if !value.IsNil() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			return name
		}
	}
	return "unknown"
}

// checkAffinity checks that the volume is on this node (kubelet: checkNodeAffinity).
func checkAffinity(volume *v1.PersistentVolume, labels map[string]string) *fault {
	const phase = "MountVolume.NodeAffinity check failed"
	if !hasAffinity(volume) {
		return nil
	}
	selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
	if err != nil {
		return mountFault(phase, volume.Name, err.Error())
	}
	if !selector.Match(&v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}) {
		return mountFault(phase, volume.Name, "no matching NodeSelectorTerms")
	}
	return nil
}

// hasAffinity reports whether a volume exists on certain nodes only.
func hasAffinity(volume *v1.PersistentVolume) bool {
	return volume.Spec.NodeAffinity != nil && volume.Spec.NodeAffinity.Required != nil
}

// checkOptions refuses mount options. A kubelet supports those of local volumes.
func checkOptions(volume *v1.PersistentVolume) *fault {
	options := volume.Annotations[v1.MountOptionAnnotation]
	if options == "" && len(volume.Spec.MountOptions) == 0 {
		return nil
	}
	text := "mount options are not supported for this volume type"
	if volume.Spec.Local != nil {
		text = "podctl does not support the mount options of local volumes"
	}
	return mountFault("MountVolume.MountOptionSupport check failed", volume.Name, text)
}
