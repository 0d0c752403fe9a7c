package criconfig

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
)

// TestResourcesOfAnUnknownMachine: where the memory of the machine cannot be read a container
// with a request is not favoured, and configured all the same.
func TestResourcesOfAnUnknownMachine(t *testing.T) {
	c := v1.Container{Name: "a", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{c}}}
	for memory, want := range map[int64]int64{0: 999, 4 << 30: 750} {
		ref := podspec.ContainerRef{Container: &p.Spec.Containers[0]}
		if got := Resources(p, ref, Node{MemoryBytes: memory}).GetOomScoreAdj(); got != want {
			t.Errorf("with %d bytes the score is adjusted by %d, want %d", memory, got, want)
		}
	}
}
