package nodestatus

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// TestStatusPatch checks that the patch of a status leads to that status, and leaves the spec alone. Two addresses may
// have the same type, although the API merges addresses by their type.
func TestStatusPatch(t *testing.T) {
	v4, v6 := v1.NodeAddress{Type: v1.NodeInternalIP, Address: "1.2.3.4"}, v1.NodeAddress{Type: v1.NodeInternalIP, Address: "fd00::1"}
	host := v1.NodeAddress{Type: v1.NodeHostName, Address: "h"}
	for name, c := range map[string]struct{ before, now []v1.NodeAddress }{
		"none":      {nil, nil},
		"the first": {nil, []v1.NodeAddress{v4, host}},
		"the same":  {[]v1.NodeAddress{v4, host}, []v1.NodeAddress{v4, host}},
		"one more":  {[]v1.NodeAddress{v4, host}, []v1.NodeAddress{v4, v6, host}},
		"one less":  {[]v1.NodeAddress{v4, v6, host}, []v1.NodeAddress{v6, host}},
	} {
		before, now := &v1.Node{}, &v1.Node{}
		before.Name, now.Name, now.Spec.ProviderID = "n", "n", "p"
		before.Status.Addresses, now.Status.Addresses = c.before, c.now
		patch, err := statusPatch(before, now)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := strategicpatch.StrategicMergePatch(text, patch, v1.Node{})
		if err != nil {
			t.Fatal(err)
		}
		var got v1.Node
		if err = json.Unmarshal(merged, &got); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(got.Status, now.Status) || got.Spec.ProviderID != "" {
			t.Errorf("%s: %s gives %+v", name, patch, got.Status.Addresses)
		}
	}
}
