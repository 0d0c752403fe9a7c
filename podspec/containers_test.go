package podspec

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// fourKinds returns a pod with a container of each type.
func fourKinds() *v1.Pod {
	always := v1.ContainerRestartPolicyAlways
	return &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "init", Image: "a:1"}, {Name: "sidecar", Image: "b:1", RestartPolicy: &always}},
		Containers:     []v1.Container{{Name: "app", Image: "a:1"}},
		EphemeralContainers: []v1.EphemeralContainer{
			{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "c:1"}, TargetContainerName: "app"},
		},
		Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "d:1"}}}},
	}}
}

func TestContainers(t *testing.T) {
	var got []string
	for _, ref := range Containers(fourKinds()) {
		got = append(got, string(ref.Type)+" "+ref.Path+" "+ref.Name+" "+ref.Target)
	}
	want := []string{
		"init spec.initContainers[0] init ", "sidecar spec.initContainers[1] sidecar ",
		"regular spec.containers[0] app ", "ephemeral spec.ephemeralContainers[0] debug app",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFindContainer(t *testing.T) {
	pod := fourKinds()
	if ref, ok := FindContainer(pod, "sidecar"); !ok || ref.Container != &pod.Spec.InitContainers[1] {
		t.Errorf("found %+v", ref)
	}
	if ref, ok := FindContainer(pod, "other"); ok {
		t.Errorf("found %+v, want nothing", ref)
	}
}

func TestImageNames(t *testing.T) {
	if got, want := ImageNames(fourKinds()), []string{"a:1", "b:1", "c:1", "d:1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
