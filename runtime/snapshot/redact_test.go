package snapshot

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/redaction"
)

// TestKnownReasonsAreNotRedacted checks that a state with the same text as a Secret's value stays, and that other
// reasons of the runtime are redacted.
func TestKnownReasonsAreNotRedacted(t *testing.T) {
	s := &Pod{Containers: []Container{
		{Status: &runtimeapi.ContainerStatus{Reason: "OOMKilled", Message: "was OOMKilled"}},
		{Status: &runtimeapi.ContainerStatus{Reason: "it was OOMKilled"}},
	}}
	s.Redact(redaction.New([]byte("OOMKilled")))
	if got := s.Containers[0].Status; got.GetReason() != "OOMKilled" || got.GetMessage() != "was (secret)" {
		t.Errorf("%q, %q", got.GetReason(), got.GetMessage())
	}
	if got := s.Containers[1].Status.GetReason(); got != "it was (secret)" {
		t.Errorf("%q", got)
	}
}
