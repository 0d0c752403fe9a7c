package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// TestWithEphemeralKeepsEveryCharacter checks that reading a pod again with another container keeps characters that end
// a line in YAML or that YAML does not allow.
func TestWithEphemeralKeepsEveryCharacter(t *testing.T) {
	d := parsed(t, minimal).Pods[0]
	d.Pod.Annotations = map[string]string{"a": "\u0085\u2028\u2029\r\n\x7f\u009b\uFEFF\uFFFE\t\"\\é\U0001F600"}
	with, err := WithEphemeral(d, &v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Pod.Annotations, with.Pod.Annotations); diff != "" || len(with.Pod.Spec.EphemeralContainers) != 1 {
		t.Error(diff)
	}
}
