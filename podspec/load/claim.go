package load

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/document"
)

// checkClaim refuses what a directory cannot be.
func checkClaim(r *report, claim *v1.PersistentVolumeClaim) {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == v1.PersistentVolumeBlock {
		r.refuse(document.ClassUnsupported, "spec.volumeMode", "a claim is a directory here, and no block device")
	}
}
