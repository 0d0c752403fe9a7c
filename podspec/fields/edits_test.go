package fields

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestEdits checks that the effect of an edit depends on the field, and for some fields on the pod.
func TestEdits(t *testing.T) {
	dir := func(name string, medium v1.StorageMedium) v1.Volume {
		return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: medium}}}
	}
	edits := NewEdits(&v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{dir("disk", ""), dir("memory", v1.StorageMediumMemory)}}})
	for path, want := range map[string]ChangeClass{
		"spec.containers[app].image":                 Replace,
		"spec.containers[app].livenessProbe":         Live,
		"spec.hostNetwork":                           NewSandbox,
		"spec.tolerations":                           NoChange,
		"spec.volumes[memory].emptyDir.sizeLimit":    NewPod,
		"spec.volumes[disk].emptyDir.sizeLimit":      Live,
		"spec.volumes[gone].emptyDir.sizeLimit":      Live,
		"spec.containers[app]":                       Replace,
		"spec.containers[app].ports[0].hostPort":     NewSandbox,
		"spec.initContainers[app].ports[0].hostPort": NoChange,
		"spec.initContainers[app].ports[0].hostIP":   NoChange,
	} {
		if got := edits.Class(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]bool{
		"spec.containers[app].resources": true, "spec.securityContext": true,
		"spec.containers[app]": false, "spec.hostname": false, "spec.containers[app].env": false,
	} {
		if got := edits.Divides(path); got != want {
			t.Errorf("%s has fields of several classes: %t", path, got)
		}
	}
}

// TestKeep keeps the fields of one class in a tree. The longest matching row decides.
func TestKeep(t *testing.T) {
	tree := map[string]any{
		"image":     "i",
		"tty":       true,
		"resources": map[string]any{"limits": map[string]any{"cpu": "1", "ephemeral-storage": "1Gi"}},
		"lifecycle": map[string]any{"stopSignal": "SIGINT", "preStop": map[string]any{}},
		"unknown":   1,
	}
	NewTable().Keep(tree, "container", Replace)
	limits, _ := tree["resources"].(map[string]any)["limits"].(map[string]any)
	lifecycle, _ := tree["lifecycle"].(map[string]any)
	if len(tree) != 4 || len(limits) != 1 || limits["ephemeral-storage"] == nil || len(lifecycle) != 1 || lifecycle["stopSignal"] == nil {
		t.Errorf("left: %v", tree)
	}
}
