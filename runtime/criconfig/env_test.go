package criconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
)

// TestEveryFieldThatIsValidHasAValue checks that every field that the loader accepts has a value, including the old
// field name of the node.
func TestEveryFieldThatIsValidHasAValue(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.name": "web", "metadata.namespace": "default", "metadata.uid": "u-1",
		"metadata.labels['tier']": "front", "metadata.annotations['a/b']": "c",
		"spec.nodeName": "here", "spec.host": "here", "spec.serviceAccountName": "sa",
		"status.hostIP": "192.0.2.1", "status.hostIPs": "192.0.2.1,2001:db8::1",
		"status.podIP": "10.0.0.2", "status.podIPs": "10.0.0.2,fd00::2",
	} {
		t.Run(path, func(t *testing.T) {
			d := podspectest.Desired(t, `apiVersion: v1
kind: Pod
metadata: {name: web, uid: u-1, labels: {tier: front}, annotations: {a/b: c}}
spec:
  serviceAccountName: sa
  containers:
  - name: app
    image: i:1
    env: [{name: F, valueFrom: {fieldRef: {fieldPath: "`+path+`"}}}]
`)
			in := &ContainerInput{
				Desired: d, Container: podspec.RegularContainers(d.Pod)[0], PodIPs: []string{"fd00::2", "10.0.0.2"},
				Node: Node{Name: "here", IPs: []string{"192.0.2.1", "2001:db8::1"}},
			}
			env, err := environment(in)
			if err != nil || maps.Collect(env.All())["F"] != want {
				t.Errorf("%v %v, want %q", env, err, want)
			}
		})
	}
}

// TestTooLongVariablesAreRefused checks that a value that is too long is refused by its field, without the
// value, and before gigabytes are allocated.
func TestTooLongVariablesAreRefused(t *testing.T) {
	long := strings.Repeat("s3cret", 20_000)
	doubled := []v1.EnvVar{{Name: "A0", Value: "s3cret"}}
	for i := range 20 {
		doubled = append(doubled, v1.EnvVar{Name: fmt.Sprintf("A%d", i+1), Value: fmt.Sprintf("$(A%d)$(A%d)", i, i)})
	}
	fromFile := &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "v", Path: "f", Key: "K"}}
	mounts := []v1.VolumeMount{{Name: "v", MountPath: "/v", SubPathExpr: "$(A)"}}
	for name, c := range map[string]struct {
		container v1.Container
		want      string
	}{
		"doubling": {v1.Container{Env: doubled}, "spec.containers[0].env[15]: the variable \"A15\" is too " +
			"long once $(NAME) is expanded in it: with its name and a NUL it may have 131072 bytes"},
		"a value of a file": {
			v1.Container{Env: []v1.EnvVar{{Name: "F", ValueFrom: fromFile}}},
			"spec.containers[0].env[0]: the variable \"F\" is too long",
		},
		"a command": {
			v1.Container{Env: []v1.EnvVar{{Name: "A", Value: long}}, Command: []string{"$(A)$(A)"}},
			"spec.containers[0].command[0]: is too long once",
		},
		"arguments together": {
			v1.Container{Env: []v1.EnvVar{{Name: "A", Value: long}}, Args: slices.Repeat([]string{"$(A)"}, 60)},
			"spec.containers[0].args: has, together with the variables, more than the 6291456 bytes",
		},
		"a path": {
			v1.Container{Env: []v1.EnvVar{{Name: "A", Value: long}}, VolumeMounts: mounts},
			"spec.containers[0].volumeMounts[0]: subPathExpr: is longer than 4095 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.container.Name = "app"
			pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{c.container}, Volumes: []v1.Volume{{Name: "v"}}}}
			in := ContainerInput{
				Desired: &podspec.Desired{Pod: pod}, Container: podspec.RegularContainers(pod)[0],
				Images: map[string]model.Image{"": {ID: "sha256:1"}},
				Files:  map[FileKey]string{{Volume: "v", Path: "f", Key: "K"}: strings.Repeat("s3cret\n", 20_000)},
			}
			var err error
			if len(c.container.VolumeMounts) > 0 {
				_, err = SubPath(in, 0)
			} else {
				_, err = Container(in)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%.300v, want %q", err, c.want)
			}
		})
	}
}
