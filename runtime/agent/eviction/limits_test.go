package eviction

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// limitedPod returns a pod with containers, each with a limit of disk space, and with emptyDirs, each with a sizeLimit.
// An empty limit is none.
func limitedPod(containers, volumes []string) *v1.Pod {
	pod := &v1.Pod{}
	for i, limit := range containers {
		c := v1.Container{Name: fmt.Sprintf("c%d", i)}
		if limit != "" {
			c.Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	for i, limit := range volumes {
		dir := &v1.EmptyDirVolumeSource{}
		if limit != "" {
			dir.SizeLimit = new(resource.MustParse(limit))
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{
			Name: fmt.Sprintf("v%d", i), VolumeSource: v1.VolumeSource{EmptyDir: dir},
		})
	}
	return pod
}

// TestExceeded covers the kubelet's TestLocalStorageEviction rules: the order of the limits, what counts for each, and
// the messages.
func TestExceeded(t *testing.T) {
	const (
		k        = 1 << 10
		volume   = "emptydirfs.limit Usage of EmptyDir volume \"v0\" exceeds the limit \"10Ki\". "
		whole    = "ephemeralpodfs.limit Pod ephemeral local storage usage exceeds the total limit of containers %s. "
		specific = "ephemeralcontainerfs.limit Container c0 exceeded its local ephemeral storage limit \"10Ki\". "
	)
	uses := func(name string, root, logs int64) ContainerUsage {
		return ContainerUsage{Name: name, Root: &Disk{Bytes: root}, Logs: &Disk{Bytes: logs}}
	}
	on := func(name string, bytes int64, local bool) VolumeUsage {
		return VolumeUsage{Name: name, Disk: Disk{Bytes: bytes}, Local: local}
	}
	for name, c := range map[string]struct {
		containers, volumes []string
		used                Usage
		want                string
	}{
		"no limit": {
			[]string{""},
			[]string{""},
			Usage{Containers: []ContainerUsage{uses("c0", 100*k, 100*k)}, Volumes: []VolumeUsage{on("v0", 100*k, true)}},
			"",
		},
		"a volume at its limit":          {nil, []string{"10Ki"}, Usage{Volumes: []VolumeUsage{on("v0", 10*k, true)}}, ""},
		"a volume above its limit":       {nil, []string{"10Ki"}, Usage{Volumes: []VolumeUsage{on("v0", 10*k+1, true)}}, volume},
		"a volume in memory":             {nil, []string{"10Ki"}, Usage{Volumes: []VolumeUsage{on("v0", 10*k+1, false)}}, volume},
		"a volume that was not measured": {nil, []string{"10Ki"}, Usage{}, ""},
		"a limit of zero":                {nil, []string{"0"}, Usage{Volumes: []VolumeUsage{on("v0", 10*k, true)}}, ""},
		"the volume comes first": {
			[]string{"10Ki"},
			[]string{"10Ki", "1"},
			Usage{Containers: []ContainerUsage{uses("c0", 11*k, 0)}, Volumes: []VolumeUsage{
				on("v1", 2, true), on("v0", 11*k, true),
			}},
			volume,
		},
		"the sum of containers, volumes and the hosts file": {
			[]string{"10Ki", "20Ki"},
			[]string{""},
			Usage{Containers: []ContainerUsage{uses("c0", 9*k, k), uses("c1", 5*k, k)}, Volumes: []VolumeUsage{
				on("v0", 10*k, true),
			}, Hosts: Disk{Bytes: 4*k + 1}},
			fmt.Sprintf(whole, "30Ki"),
		},
		"the sum without a volume in memory": {
			[]string{"10Ki"},
			[]string{""},
			Usage{Containers: []ContainerUsage{uses("c0", 5*k, 5*k)}, Volumes: []VolumeUsage{on("v0", 10*k, false)}},
			"",
		},
		"a container without a limit counts for the pod": {
			[]string{"10Ki", ""},
			nil,
			Usage{Containers: []ContainerUsage{uses("c1", 11*k, 0)}},
			fmt.Sprintf(whole, "10Ki"),
		},
		"a container": {
			[]string{"10Ki", "20Ki"},
			nil,
			Usage{Containers: []ContainerUsage{uses("c0", 10*k, 1)}},
			specific,
		},
		"a layer elsewhere does not count for the container": {
			[]string{"10Ki", "20Ki"},
			nil,
			Usage{Containers: []ContainerUsage{uses("c0", 11*k, 0)}, OwnImageFs: true},
			"",
		},
		"a layer elsewhere counts for the pod": {
			[]string{"10Ki"},
			nil,
			Usage{Containers: []ContainerUsage{uses("c0", 11*k, 0)}, OwnImageFs: true},
			fmt.Sprintf(whole, "10Ki"),
		},
		"nothing is known of a container": {[]string{"10Ki"}, nil, Usage{Containers: []ContainerUsage{{Name: "c0"}}}, ""},
	} {
		pod := limitedPod(c.containers, c.volumes)
		got := ""
		if why := exceeded(pod, &c.used); why != nil {
			if got = why.Signal + " " + why.Message; !why.OwnLimit || !why.At.IsZero() {
				t.Errorf("%s: %+v", name, why)
			}
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestIsLimited checks which pods are measured.
func TestIsLimited(t *testing.T) {
	for _, c := range []struct {
		containers, volumes []string
		want                bool
	}{
		{[]string{""}, []string{""}, false},
		{nil, []string{"0"}, false},
		{nil, []string{"", "1"}, true},
		{[]string{"", "1Gi"}, nil, true},
	} {
		if got := isLimited(limitedPod(c.containers, c.volumes)); got != c.want {
			t.Errorf("%v %v: %t", c.containers, c.volumes, got)
		}
	}
	pod := limitedPod([]string{""}, nil)
	pod.Spec.InitContainers = limitedPod([]string{"1Gi"}, nil).Spec.Containers
	if !isLimited(pod) {
		t.Error("an init container with a limit")
	}
}
