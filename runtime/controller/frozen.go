package controller

import (
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
)

// frozen refuses changes that the API server also refuses, because pods are found by the selector, and a Job's tries
// all have one template (ValidateDeploymentUpdate, ValidateStatefulSetUpdate, ValidateJobUpdate).
func frozen(before, after *podspec.Workload) error {
	earlier := frozenFields(before)
	for path, value := range frozenFields(after) {
		if !sameText(value, earlier[path]) {
			return &objects.FrozenError{Key: KeyOf(after), Field: path}
		}
	}
	return nil
}

// frozenFields returns the fields of a workload that cannot change, by path.
func frozenFields(w *podspec.Workload) map[string]any {
	switch w.Kind() {
	case podspec.KindDeployment:
		return map[string]any{"spec.selector": w.Deployment.Spec.Selector}
	case podspec.KindReplicaSet:
		return map[string]any{"spec.selector": w.ReplicaSet.Spec.Selector}
	case podspec.KindDaemonSet:
		return map[string]any{"spec.selector": w.DaemonSet.Spec.Selector}
	case podspec.KindStatefulSet:
		s := &w.StatefulSet.Spec
		return map[string]any{
			"spec.selector":             s.Selector,
			"spec.serviceName":          s.ServiceName,
			"spec.podManagementPolicy":  s.PodManagementPolicy,
			"spec.volumeClaimTemplates": s.VolumeClaimTemplates,
		}
	case podspec.KindJob:
		s := &w.Job.Spec
		return map[string]any{
			"spec.template":       s.Template,
			"spec.selector":       s.Selector,
			"spec.completionMode": s.CompletionMode,
		}
	}
	return nil
}
