package admission

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// TestCompareResizes checks the order of resizes that wait (kubelet: TestSortPendingResizes).
func TestCompareResizes(t *testing.T) {
	resize := func(name string, priority int32, class v1.PodQOSClass, since int64) WaitingResize {
		one := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")}
		c := v1.Container{Resources: v1.ResourceRequirements{Requests: one}}
		if class == v1.PodQOSGuaranteed {
			c.Resources.Limits = one
		}
		pod := &v1.Pod{Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{c}}}
		pod.UID = types.UID(name)
		w := WaitingResize{Pod: pod}
		if since > 0 {
			w.Since = time.Unix(since, 0)
		}
		return w
	}
	all := []WaitingResize{
		resize("new", 0, v1.PodQOSBurstable, 0),
		resize("younger", 0, v1.PodQOSBurstable, 20),
		resize("older", 0, v1.PodQOSBurstable, 10),
		resize("guaranteed", 0, v1.PodQOSGuaranteed, 30),
		resize("newer", 0, v1.PodQOSBurstable, 0),
		resize("important", 5, v1.PodQOSBurstable, 40),
	}
	slices.SortFunc(all, func(a, b WaitingResize) int { return CompareResizes(&a, &b) })
	var got []string
	for i := range all {
		got = append(got, string(all[i].Pod.UID))
	}
	if want := "important guaranteed older younger new newer"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}
