package criconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// TestResourcesOfAnUnknownMachine checks that a container with a request is configured without preference if the memory
// of the machine is unknown.
func TestResourcesOfAnUnknownMachine(t *testing.T) {
	c := v1.Container{
		Name:      "a",
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}},
	}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{c}}}
	for memory, want := range map[int64]int64{0: 999, 4 << 30: 750} {
		ref := podspec.ContainerRef{Container: &p.Spec.Containers[0]}
		if got := Resources(p, ref, Node{MemoryBytes: memory}).GetOomScoreAdj(); got != want {
			t.Errorf("with %d bytes the score is adjusted by %d, want %d", memory, got, want)
		}
	}
}

// TestCgroupOfAPodBelowARoot checks that the root is a part of the names of slices, as in the kubelet. systemd would
// create a slice with another name in another place than podctl expects.
func TestCgroupOfAPodBelowARoot(t *testing.T) {
	for name, want := range map[string][2]string{
		"": {"/kubepods/burstable/poda-b", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_b.slice"},
		"ci-1": {
			"/ci-1/kubepods/burstable/poda-b",
			"/ci_1.slice/ci_1-kubepods.slice/ci_1-kubepods-burstable.slice/ci_1-kubepods-burstable-poda_b.slice",
		},
		"/a/b-c/": {
			"/a/b-c/kubepods/burstable/poda-b",
			"/a.slice/a-b_c.slice/a-b_c-kubepods.slice/a-b_c-kubepods-burstable.slice/a-b_c-kubepods-burstable-poda_b.slice",
		},
	} {
		for i, systemd := range []bool{false, true} {
			if got := CgroupParents("a-b", Node{CgroupRoot: name, SystemdCgroup: systemd})[1]; got != want[i] {
				t.Errorf("root %q, systemd %t: %s, want %s", name, systemd, got, want[i])
			}
		}
	}
}

// TestAllPodsCgroup checks the limits of the cgroup of all pods. Page sizes without pages are limited to nothing.
func TestAllPodsCgroup(t *testing.T) {
	limits := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("1500m"), v1.ResourceMemory: resource.MustParse("1Gi"),
		model.ResourcePIDs: resource.MustParse("100"), "hugepages-2Mi": resource.MustParse("4Mi"),
	}
	node := Node{HugePageSizes: []string{"2MB", "1GB"}}
	want := PodResources{
		CPUShares: new(uint64(1536)), Memory: new(int64(1 << 30)), Pids: new(int64(100)),
		HugePages: map[string]uint64{"2MB": 4 << 20, "1GB": 0},
	}
	if diff := cmp.Diff(want, AllPodsCgroup(limits, node)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := AllPodsCgroup(nil, Node{}); got.CPUShares != nil || got.Memory != nil || got.Pids != nil {
		t.Errorf("an unknown machine: %+v", got)
	}
}
