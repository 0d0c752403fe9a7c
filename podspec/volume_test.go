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
	var got, resolved []string
	for _, vol := range UsedVolumes(pod) {
		got = append(got, vol.Name)
	}
	for _, vol := range MountedVolumes(&Desired{Pod: pod}) {
		resolved = append(resolved, vol.Name)
	}
	want := []string{"debug", "app", "init"}
	if diff := cmp.Diff([][]string{want, want}, [][]string{got, resolved}); diff != "" {
		t.Errorf("used volumes differ (-want +got):\n%s", diff)
	}
}

func TestFindVolume(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "a"}, {Name: "b"}}}}
	if vol := FindVolume(pod, "b"); vol != &pod.Spec.Volumes[1] {
		t.Errorf("found %v", vol)
	}
	if vol := FindVolume(pod, "c"); vol != nil {
		t.Errorf("found %v, want nothing", vol)
	}
	d := &Desired{Pod: pod}
	if vol, ok := VolumeNamed(d, "b"); !ok || vol.Volume != &pod.Spec.Volumes[1] || vol.Path != "spec.volumes[1]" {
		t.Errorf("found %v", vol)
	}
	if vol, ok := VolumeNamed(d, "c"); ok {
		t.Errorf("found %v, want nothing", vol)
	}
}
