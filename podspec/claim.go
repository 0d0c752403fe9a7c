package podspec

import (
	v1 "k8s.io/api/core/v1"
)

// checkClaim refuses what a directory cannot be.
func checkClaim(r *report, claim *v1.PersistentVolumeClaim) {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == v1.PersistentVolumeBlock {
		r.refuse(ClassUnsupported, "spec.volumeMode", "a claim is a directory here, and no block device")
	}
}
