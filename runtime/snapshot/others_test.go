package snapshot

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// TestOthersOfARecording checks that the resources of other pods in a recording count, unless these have ended or were
// rejected.
func TestOthersOfARecording(t *testing.T) {
	sized := func(name, cores string) *podspec.Desired {
		return modeltest.Load(t,
			"apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", uid: "+name+"-0000-0000}\nspec:\n  containers: "+
				"[{name: a, image: i:1, resources: {requests: {cpu: "+cores+"}}}]\n")
	}
	node := &criconfig.Node{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}}
	web, other := sized("web", "3"), sized("other", "2")
	for name, c := range map[string]struct {
		memory model.Memory
		reason model.Reason
	}{
		"the other pod runs":             {model.Memory{Applied: other}, "OutOfcpu"},
		"the other pod has ended":        {model.Memory{Applied: other, Completion: &model.Completion{}}, ""},
		"the other pod was rejected":     {model.Memory{Applied: other, Rejection: &model.Rejection{}}, ""},
		"the other pod is being deleted": {model.Memory{Applied: other, Deletion: &model.Deletion{}}, "OutOfcpu"},
		"no record":                      {model.Memory{}, ""},
	} {
		r := Recording{
			{Pod: model.RefOf(web.Pod), Node: node, Checkpoint: &state.Checkpoint{}},
			{Pod: model.RefOf(other.Pod), Node: node, Checkpoint: &state.Checkpoint{Memory: c.memory}},
		}
		p, err := r.Plan(t.Context(), web, plan.Options{Admission: &plan.Admission{}})
		if err != nil {
			t.Fatal(err)
		}
		got := model.Reason("")
		if len(p.Holds) > 0 {
			got = p.Holds[0].Reason
		}
		if got != c.reason || p.Refused() != (name == "the other pod is being deleted") {
			t.Errorf("%s: %+v", name, p.Holds)
		}
	}
	r := Recording{
		{Pod: model.RefOf(web.Pod), Node: node, Checkpoint: &state.Checkpoint{Memory: model.Memory{Applied: sized("web", "1")}}},
		{Pod: model.RefOf(other.Pod), Node: node, Checkpoint: &state.Checkpoint{Memory: model.Memory{Applied: sized("other", "4")}}},
	}
	if p, err := r.Plan(t.Context(), web, plan.Options{Admission: &plan.Admission{}}); err != nil || p.Rejection == nil {
		t.Errorf("an edit of a pod that is not there: %+v, %v", p, err)
	}
}
