package criconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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

// TestResourcesOfVariables checks each resource of a container as a variable, with the values of a kubelet: a limit that
// is missing or zero is that of the pod, or what the Node has for pods.
func TestResourcesOfVariables(t *testing.T) {
	const limits = "resources: {limits: {cpu: 1500m, memory: 64Mi, ephemeral-storage: 1Gi, hugepages-2Mi: 4Mi}, " +
		"requests: {cpu: 250m, memory: 32Mi, ephemeral-storage: 1Mi, hugepages-2Mi: 4Mi}}"
	const ofPod = "  resources: {limits: {cpu: 3, memory: 1Gi}}\n"
	node := Node{Allocatable: v1.ResourceList{"cpu": resource.MustParse("8")}}.As(&model.NodeIdentity{
		Allocatable: v1.ResourceList{
			"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("4Gi"),
			"ephemeral-storage": resource.MustParse("20Gi"), "hugepages-2Mi": resource.MustParse("8Mi"),
		},
	})
	for _, c := range []struct{ pod, container, ref, want string }{
		{"", limits, "resource: limits.cpu", "2"},
		{"", limits, "resource: limits.cpu, divisor: 1m", "1500"},
		{"", limits, "resource: limits.memory, divisor: 1Mi", "64"},
		{"", limits, "resource: limits.memory, divisor: 1Gi", "1"},
		{"", limits, "resource: limits.ephemeral-storage", "1073741824"},
		{"", limits, "resource: limits.hugepages-2Mi, divisor: 1Mi", "4"},
		{"", limits, "resource: requests.cpu, divisor: 1m", "250"},
		{"", limits, "resource: requests.memory", "33554432"},
		{"", limits, "resource: requests.ephemeral-storage, divisor: 1Mi", "1"},
		{"", limits, "resource: requests.hugepages-2Mi", "4194304"},
		{"", "", "resource: limits.cpu", "4"},
		{"", "", "resource: limits.memory, divisor: 1Gi", "4"},
		{"", "", "resource: limits.ephemeral-storage, divisor: 1Gi", "20"},
		{"", "", "resource: limits.hugepages-2Mi", "0"},
		{"", "", "resource: requests.cpu", "0"},
		{"", "", "resource: requests.ephemeral-storage", "0"},
		{"", "resources: {limits: {cpu: 0}}", "resource: limits.cpu", "4"},
		{ofPod, "", "resource: limits.cpu", "3"},
		{ofPod, "", "resource: limits.memory, divisor: 1Mi", "1024"},
		{ofPod, "", "resource: limits.ephemeral-storage, divisor: 1Gi", "20"},
		{ofPod, limits, "resource: limits.memory, divisor: 1Mi", "64"},
		{"  resources: {limits: {cpu: 0}}\n", "", "resource: limits.cpu", "4"},
		{"", "", "containerName: other, resource: limits.cpu", "4"},
		{"", "", "containerName: init, resource: limits.cpu", "0"},
	} {
		d := podspectest.FromAPI(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"+c.pod+
			"  initContainers: [{name: init, image: 'i:1'}]\n  containers:\n  - name: app\n    image: i:1\n    "+c.container+
			"\n    env: [{name: F, valueFrom: {resourceFieldRef: {"+c.ref+"}}}]\n  - {name: other, image: 'i:1'}\n")
		env, err := environment(&ContainerInput{Desired: d, Container: podspec.RegularContainers(d.Pod)[0], Node: node})
		if err != nil || maps.Collect(env.All())["F"] != c.want {
			t.Errorf("%+v: %v %v", c, env, err)
		}
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
