package podspec

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestLimits checks that a pod is limited if every container or the pod itself is.
func TestLimits(t *testing.T) {
	limited := func(cpu, memory string) v1.ResourceRequirements {
		limits := v1.ResourceList{}
		for name, text := range map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: memory} {
			if text != "" {
				limits[name] = resource.MustParse(text)
			}
		}
		return v1.ResourceRequirements{Limits: limits}
	}
	for name, c := range map[string]struct {
		containers  []v1.ResourceRequirements
		pod         *v1.ResourceRequirements
		cpu, memory bool
		total       string
	}{
		"nothing":            {[]v1.ResourceRequirements{limited("", "")}, nil, false, false, "0"},
		"every container":    {[]v1.ResourceRequirements{limited("1", "1Gi"), limited("500m", "1Gi")}, nil, true, true, "2Gi"},
		"one container":      {[]v1.ResourceRequirements{limited("1", "1Gi"), limited("1", "")}, nil, true, false, "1Gi"},
		"the last container": {[]v1.ResourceRequirements{limited("", ""), limited("1", "1Gi")}, nil, false, false, "1Gi"},
		"the pod":            {[]v1.ResourceRequirements{limited("", "")}, new(limited("", "3Gi")), false, true, "3Gi"},
		"the pod, and some": {
			[]v1.ResourceRequirements{limited("1", "1Gi"), limited("", "")},
			new(limited("2", "3Gi")),
			true,
			true,
			"3Gi",
		},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Resources: c.pod}}
		for _, r := range c.containers {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Resources: r})
		}
		limits, cpu, memory := Limits(pod)
		if cpu != c.cpu || memory != c.memory || limits.Memory().Cmp(resource.MustParse(c.total)) != 0 {
			t.Errorf("%s: cpu %t, memory %t of %s, want %t, %t, %s", name, cpu, memory, limits.Memory(), c.cpu, c.memory, c.total)
		}
	}
}
