package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestANetworkThatIsNotReady checks that it holds a new pod, but not one on the node's network.
func TestANetworkThatIsNotReady(t *testing.T) {
	ofTheNode := strings.Replace(tripPod("web"), "spec:\n", "spec:\n  hostNetwork: true\n", 1)
	for name, test := range map[string]struct {
		manifest string
		holds    []plan.Hold
	}{
		"a separate network": {
			tripPod("web"),
			[]plan.Hold{{Reason: model.NetworkNotReady, Message: "no CNI configuration", Recheck: time.Second}},
		},
		"the node's network": {ofTheNode, []plan.Hold{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaultLab(t, faultShape{})
			f.server.SetNetwork("no CNI configuration")
			p, err := f.engine.Pods.Plan(t.Context(), f.load(test.manifest), plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.holds, p.Holds); diff != "" {
				t.Errorf("holds differ (-want +got):\n%s", diff)
			}
			if held := len(p.Steps) == 0; held != (len(test.holds) > 0) {
				t.Errorf("the plan has %d steps", len(p.Steps))
			}
		})
	}
}
