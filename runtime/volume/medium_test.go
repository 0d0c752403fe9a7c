package volume

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
)

func limited(memory string) v1.ResourceRequirements {
	if memory == "" {
		return v1.ResourceRequirements{}
	}
	return v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}}
}

func TestSizeOfAVolumeInMemory(t *testing.T) {
	const mib = 1 << 20
	tests := map[string]struct {
		node, first, second, init, pod, volume string
		want                                   int64
	}{
		"the node's memory":                       {node: "64Mi", want: 64 * mib},
		"nothing is known":                        {want: 0},
		"every container has a limit":             {node: "64Mi", first: "10Mi", second: "20Mi", init: "5Mi", want: 30 * mib},
		"an init container may use more":          {node: "64Mi", first: "10Mi", second: "20Mi", init: "40Mi", want: 40 * mib},
		"one container has none":                  {node: "64Mi", first: "10Mi", init: "5Mi", want: 64 * mib},
		"an init container has none":              {node: "64Mi", first: "10Mi", second: "20Mi", want: 64 * mib},
		"the pod has a limit":                     {node: "64Mi", first: "10Mi", pod: "32Mi", want: 32 * mib},
		"limits beyond the node":                  {node: "64Mi", first: "1Gi", second: "1Gi", init: "1Gi", want: 64 * mib},
		"sizeLimit is the least":                  {node: "64Mi", first: "10Mi", second: "10Mi", init: "1Mi", volume: "4Mi", want: 4 * mib},
		"sizeLimit is more than the pod may have": {node: "64Mi", pod: "16Mi", volume: "32Mi", want: 16 * mib},
		"sizeLimit alone":                         {volume: "4Mi", want: 4 * mib},
		"sizeLimit 0 means no limit":              {node: "64Mi", volume: "0", want: 64 * mib},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			vol := emptyDirVolume("tmp")
			vol.EmptyDir.Medium = v1.StorageMediumMemory
			if test.volume != "" {
				vol.EmptyDir.SizeLimit = new(resource.MustParse(test.volume))
			}
			c := newContext(t, vol)
			c.Allocatable = nil
			if test.node != "" {
				c.Allocatable = v1.ResourceList{v1.ResourceMemory: resource.MustParse(test.node)}
			}
			spec := &c.Desired.Pod.Spec
			spec.Containers = []v1.Container{{Resources: limited(test.first)}, {Resources: limited(test.second)}}
			spec.InitContainers = []v1.Container{{Resources: limited(test.init)}}
			if test.pod != "" {
				spec.Resources = new(limited(test.pod))
			}
			if got := (&mounter{Context: c, vol: podspec.Volume{Volume: &vol}}).memorySize(); got != test.want {
				t.Errorf("memorySize = %d, want %d", got, test.want)
			}
		})
	}
}

func TestSecretsAreBoundedLikeMemory(t *testing.T) {
	c := newContext(t, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Secret: secret()}})
	if got := (&mounter{Context: c, vol: podspec.Volumes(c.Desired)[0]}).memorySize(); got != 64<<20 {
		t.Errorf("memorySize = %d, want the node's", got)
	}
}

func TestMediumOfEachKind(t *testing.T) {
	huge := emptyDirVolume("v")
	huge.EmptyDir.Medium = "HugePages-2Mi"
	tests := map[string]struct {
		vol  v1.Volume
		want v1.StorageMedium
	}{
		"emptyDir":    {emptyDirVolume("v"), ""},
		"huge pages":  {huge, "HugePages-2Mi"},
		"configMap":   {configMapVolume("v"), ""},
		"secret":      {v1.Volume{VolumeSource: v1.VolumeSource{Secret: secret()}}, v1.StorageMediumMemory},
		"downwardAPI": {v1.Volume{VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}}, v1.StorageMediumMemory},
		"projected":   {v1.Volume{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}}, v1.StorageMediumMemory},
	}
	for name, test := range tests {
		if got := medium(&test.vol); got != test.want {
			t.Errorf("%s: medium %q, want %q", name, got, test.want)
		}
	}
}

func TestPageSize(t *testing.T) {
	request := func(names ...string) v1.Container {
		list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		for _, name := range names {
			list[v1.ResourceName("hugepages-"+name)] = resource.MustParse("64Mi")
		}
		return v1.Container{Resources: v1.ResourceRequirements{Requests: list}}
	}
	tests := map[string]struct {
		medium     v1.StorageMedium
		containers []v1.Container
		init       []v1.Container
		pod        *v1.ResourceRequirements
		want       int64
		err        string
	}{
		"the only requested size": {medium: "HugePages", containers: []v1.Container{request("2Mi"), request()}, want: 2 << 20},
		"the same size twice": {
			medium:     "HugePages",
			containers: []v1.Container{request("2Mi"), request("2048Ki")},
			want:       2 << 20,
		},
		"an init container requests it": {medium: "HugePages", init: []v1.Container{request("1Gi")}, want: 1 << 30},
		"the pod requests it": {
			medium: "HugePages",
			pod:    &v1.ResourceRequirements{Requests: request("1Gi").Resources.Requests},
			want:   1 << 30,
		},
		"one of several sizes": {medium: "HugePages-1Gi", containers: []v1.Container{request("2Mi", "1Gi")}, want: 1 << 30},
		"no request": {
			medium:     "HugePages",
			containers: []v1.Container{request()},
			err:        "add, for example, hugepages-2Mi",
		},
		"several sizes": {
			medium:     "HugePages",
			containers: []v1.Container{request("2Mi", "1Gi")},
			err:        "several page sizes",
		},
		"no container requests that size": {
			medium:     "HugePages-1Gi",
			containers: []v1.Container{request("2Mi")},
			err:        "requests hugepages-1Gi",
		},
		"an invalid size": {medium: "HugePages-big", containers: []v1.Container{request("2Mi")}, err: "has no page size"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{Containers: test.containers, InitContainers: test.init, Resources: test.pod}}
			got, err := pageSize(pod, test.medium)
			if got != test.want || (err == nil) != (test.err == "") {
				t.Fatalf("pageSize = %d, %v; want %d, %q", got, err, test.want, test.err)
			}
			if err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %q does not contain %q", err, test.err)
			}
		})
	}
}
