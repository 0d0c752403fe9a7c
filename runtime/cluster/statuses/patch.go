package statuses

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patchOf returns the strategic merge patch from one status to another, or nil if they are equal (kubelet:
// preparePatchBytesForPodStatus). The uid is in the patch as a precondition: a pod with the same name and another uid
// gives a conflict.
func patchOf(uid types.UID, before, after *v1.PodStatus) ([]byte, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	old, err := json.Marshal(v1.Pod{Status: *before})
	if err != nil {
		return nil, fmt.Errorf("encode the status in the API: %w", err)
	}
	changed, err := json.Marshal(v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: *after})
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, changed, v1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compare the status with the API's: %w", err)
	}
	if bytes.Equal(patch, fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, uid)) {
		return nil, nil
	}
	return patch, nil
}
