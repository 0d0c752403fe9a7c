package model

import v1 "k8s.io/api/core/v1"

// IsOver reports whether a pod has succeeded or failed.
func IsOver(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}
