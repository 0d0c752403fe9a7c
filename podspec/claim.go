package podspec

import (
	v1 "k8s.io/api/core/v1"
)

// claimProblems refuses what a directory cannot be.
func claimProblems(d *document, claim *v1.PersistentVolumeClaim) []Problem {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == v1.PersistentVolumeBlock {
		return []Problem{d.at(ClassUnsupported, "spec.volumeMode", "a claim is a directory here, and no block device")}
	}
	return nil
}
