package criconfig

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// imageMount returns the input for a container that mounts the image of a volume.
func imageMount(mount v1.VolumeMount) *ContainerInput {
	pod := &v1.Pod{}
	pod.Name = "p"
	mount.Name, mount.MountPath = "data", "/data"
	pod.Spec.Containers = []v1.Container{{
		Name: "app", VolumeMounts: []v1.VolumeMount{mount},
		Env: []v1.EnvVar{{Name: "PART", Value: "eu"}, {Name: "UP", Value: "../.."}, {Name: "ROOT", Value: "/etc"}},
	}}
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "data:1"}}}}
	corev1.SetObjectDefaults_Pod(pod)
	ref, _ := podspec.FindContainer(pod, "app")
	return &ContainerInput{
		Desired:   &podspec.Desired{Pod: pod},
		Container: ref,
		Images:    map[string]model.Image{"data:1": {ID: "sha256:da7a"}},
	}
}

// TestSubPathOfAnImage checks that a part of an image follows the same rules as a part of any other volume (kubelet:
// makeMounts).
func TestSubPathOfAnImage(t *testing.T) {
	for name, c := range map[string]struct {
		mount       v1.VolumeMount
		part, fault string
	}{
		"the whole":           {},
		"a part":              {mount: v1.VolumeMount{SubPath: "eu"}, part: "eu"},
		"a part by variables": {mount: v1.VolumeMount{SubPathExpr: "of/$(PART)"}, part: "of/eu"},
		"a missing variable": {
			mount: v1.VolumeMount{SubPathExpr: "$(ABSENT)"},
			fault: "spec.containers[0].volumeMounts[0]: subPathExpr: missing value for ABSENT",
		},
		"an absolute path": {
			mount: v1.VolumeMount{SubPathExpr: "$(ROOT)"},
			fault: "spec.containers[0].volumeMounts[0]: error SubPath `/etc` must not be an absolute path",
		},
		"out of the image": {
			mount: v1.VolumeMount{SubPathExpr: "a/$(UP)"},
			fault: "unable to provision SubPath `a/../..`: must not contain '..'",
		},
		"out, written plainly": {mount: v1.VolumeMount{SubPath: ".."}, fault: "unable to provision SubPath `..`: must not contain '..'"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := mounts(imageMount(c.mount))
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("error %v, want %s", err, c.fault)
				}
				return
			}
			if err != nil || list[0].GetImageSubPath() != c.part {
				t.Errorf("%v %v, want the part %q", list, err, c.part)
			}
		})
	}
}

// TestImageVolumeWithoutItsImage checks that a missing image is an error.
func TestImageVolumeWithoutItsImage(t *testing.T) {
	in := imageMount(v1.VolumeMount{})
	in.Images = nil
	want := `spec.containers[0].volumeMounts[0]: image data:1 of volume "data" is not present`
	if list, err := mounts(in); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v %v, want %s", list, err, want)
	}
}
