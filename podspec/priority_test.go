package podspec

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestPriority checks that a number takes precedence over a class, and that other classes count as 0.
func TestPriority(t *testing.T) {
	for _, c := range []struct {
		class    string
		number   *int32
		want     int32
		critical bool
	}{
		{"system-node-critical", new(int32(7)), 7, false},
		{"system-node-critical", nil, 2_000_001_000, true},
		{"system-cluster-critical", nil, 2_000_000_000, true},
		{"gold", nil, 0, false},
		{"", new(int32(2_000_000_000)), 2_000_000_000, true},
		{"", new(int32(1_999_999_999)), 1_999_999_999, false},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{PriorityClassName: c.class, Priority: c.number}}
		if got := Priority(pod); got != c.want || IsCritical(pod) != c.critical {
			t.Errorf("%q %v: %d, critical %v", c.class, c.number, got, IsCritical(pod))
		}
	}
}
