package runtime

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
)

// TestRoundTripsOfAPlan checks that a plan of a running pod needs two lists and one status of each listed object. Other
// pods on the node do not matter, and nothing is queried twice.
func TestRoundTripsOfAPlan(t *testing.T) {
	for _, others := range []int{0, 20} {
		t.Run(fmt.Sprintf("%d other pods", others), func(t *testing.T) {
			f := newFaultLab(t, faultShape{})
			for i := range others {
				if err := f.converge(tripPod(fmt.Sprintf("other%d", i))); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.converge(tripPod("web")); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{
				"Version": 1, "Status": 1, "RuntimeConfig": 1, "ListPodSandbox": 1, "ListContainers": 1,
				"PodSandboxStatus": 1, "ContainerStatus": 3, "ImageStatus": 2,
			}
			if got := f.tripsOfPlan(t, "web"); !maps.Equal(got, want) {
				t.Errorf("the calls of a plan are %v, want %v", got, want)
			}
		})
	}
}

// TestRoundTripsOfANewPod checks that the plan of a pod that does not exist needs only the lists.
func TestRoundTripsOfANewPod(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	want := map[string]int{"Version": 1, "Status": 1, "RuntimeConfig": 1, "ListPodSandbox": 1, "ListContainers": 1, "ImageStatus": 2}
	if got := f.tripsOfPlan(t, "web"); !maps.Equal(got, want) {
		t.Errorf("the calls of a plan are %v, want %v", got, want)
	}
}

func tripPod(name string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n" +
		"  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:2'}, {name: c, image: 'i:1'}]\n"
}

// tripsOfPlan counts the calls of a plan with an engine that knows nothing yet, like a new process.
func (f *faultLab) tripsOfPlan(t *testing.T, name string) map[string]int {
	t.Helper()
	engine := NewEngine(f.engine.Client, f.settings)
	f.proxy.Reset()
	if _, err := engine.Pods.Plan(t.Context(), f.load(tripPod(name)), plan.Options{}); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, method := range f.proxy.Calls() {
		counts[method]++
	}
	return counts
}

// TestRoundTripsOfManyPods checks that many pods are listed at once, with the same result as one by one.
func TestRoundTripsOfManyPods(t *testing.T) {
	f := newFaultLab(t, faultShape{})
	var pods []*podspec.Desired
	var single []*v1.Pod
	for i := range observe.ManyPods + 3 {
		text := tripPod(fmt.Sprintf("web%d", i))
		if err := f.converge(text); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, f.load(text))
	}
	for _, d := range pods {
		one, err := f.engine.Lister.List(t.Context(), []*podspec.Desired{d})
		if err != nil {
			t.Fatal(err)
		}
		single = append(single, one...)
	}
	f.proxy.Reset()
	all, err := f.engine.Lister.List(t.Context(), pods)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(single, all); diff != "" || len(all) == 0 || len(all[0].Status.ContainerStatuses) != 3 {
		t.Errorf("(-one by one +all at once)\n%s", diff)
	}
	if lists := f.proxy.Count("ListPodSandbox") + f.proxy.Count("ListContainers"); lists != 2 {
		t.Errorf("there are %d lists, want 2", lists)
	}
}
