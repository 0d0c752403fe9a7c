package snapshot

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/redaction"
)

// TestReasonsStay: a state that is named like a Secret's value stays a state; what else a runtime
// gives as a reason is redacted.
func TestReasonsStay(t *testing.T) {
	s := &Pod{Containers: []Container{
		{Status: &runtimeapi.ContainerStatus{Reason: "OOMKilled", Message: "was OOMKilled"}},
		{Status: &runtimeapi.ContainerStatus{Reason: "it was OOMKilled"}},
	}}
	s.Redact(redaction.New([]byte("OOMKilled")))
	if got := s.Containers[0].Status; got.Reason != "OOMKilled" || got.Message != "was (secret)" {
		t.Errorf("%q, %q", got.Reason, got.Message)
	}
	if got := s.Containers[1].Status.Reason; got != "it was (secret)" {
		t.Errorf("%q", got)
	}
}
