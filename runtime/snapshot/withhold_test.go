package snapshot

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/state"
)

// TestWithholdIsForPodctlsOwn checks that messages of podctl's own containers are withheld, and of all containers with
// an unreadable checkpoint. Those of other tools are shown, and an empty message stays empty.
func TestWithholdIsForPodctlsOwn(t *testing.T) {
	own := map[string]string{criconfig.AnnotationContainerSpecHash: "x"}
	for name, c := range map[string]struct {
		annotations  map[string]string
		unreadable   bool
		output, want string
	}{
		"podctl's":             {own, false, "words", redaction.Withheld},
		"podctl's, and silent": {own, false, "", ""},
		"a kubelet's":          {nil, false, "words", "words"},
		"a damaged checkpoint": {nil, true, "words", redaction.Withheld},
	} {
		status := &runtimeapi.ContainerStatus{Annotations: c.annotations, Message: c.output, Reason: "Error"}
		s := &Pod{
			Checkpoint: &state.Checkpoint{Unreadable: c.unreadable},
			Containers: []Container{{Status: status, TerminationMessage: c.output}},
		}
		s.Withhold()
		got := s.Containers[0]
		if got.TerminationMessage != c.want || got.Status.GetMessage() != c.want ||
			got.Status.GetReason() != "Error" || status.GetMessage() != c.output {
			t.Errorf("%s: %q %q", name, got.TerminationMessage, got.Status)
		}
	}
}
