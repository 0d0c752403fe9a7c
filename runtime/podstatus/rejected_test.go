package podstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestRejectedPods checks that a rejected pod has failed with the reason of its rejection and shows nothing else
// (kubelet: TestHandlePortConflicts and those beside it, by rejectPod).
func TestRejectedPods(t *testing.T) {
	w := policy(t, v1.RestartPolicyAlways)
	w.Memory.Rejection = &model.Rejection{Reason: "OutOfcpu", Message: "too much"}
	w.Memory.StartTime = modeltest.Noon().Add(-time.Minute)
	want := v1.PodStatus{
		Phase: v1.PodFailed, Reason: "OutOfcpu", Message: "Pod was rejected: too much", QOSClass: v1.PodQOSBestEffort,
		StartTime: &metav1.Time{Time: w.Memory.StartTime},
	}
	if diff := cmp.Diff(want, statusOf(w)); diff != "" {
		t.Error(diff)
	}
	if !podOf(w).Over() {
		t.Error("it is not over")
	}
}
