package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestUsedAreTheVolumesThatAreMounted(t *testing.T) {
	mounts := func(names ...string) (list []v1.VolumeMount) {
		for _, name := range names {
			list = append(list, v1.VolumeMount{Name: name})
		}
		return list
	}
	named := func(name string) v1.Volume { return v1.Volume{Name: name} }
	image := v1.Volume{Name: "image", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{}}}
	pod := &v1.Pod{Spec: v1.PodSpec{
		Volumes: []v1.Volume{
			named("unused"), named("debug"), named("app"), image, named("init"),
		},
		InitContainers: []v1.Container{{VolumeMounts: mounts("init", "image")}},
		Containers:     []v1.Container{{VolumeMounts: mounts("app", "init", "app")}},
		EphemeralContainers: []v1.EphemeralContainer{
			{EphemeralContainerCommon: v1.EphemeralContainerCommon{VolumeMounts: mounts("debug")}},
		},
	}}
	var got []string
	for _, vol := range UsedVolumes(pod) {
		got = append(got, vol.Name)
	}
	if diff := cmp.Diff([]string{"debug", "app", "init"}, got); diff != "" {
		t.Errorf("used volumes differ (-want +got):\n%s", diff)
	}
}

func TestFindVolume(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "a"}, {Name: "b"}}}}
	if vol, path := FindVolume(pod, "b"); vol != &pod.Spec.Volumes[1] || path != "spec.volumes[1]" {
		t.Errorf("found %v at %q", vol, path)
	}
	if vol, path := FindVolume(pod, "c"); vol != nil || path != "" {
		t.Errorf("found %v at %q, want nothing", vol, path)
	}
}
