package syncpod

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// TestResizesInCluster checks the life of resizes of a pod of the API server: one that fits, one that waits, and one that
// would need less memory than the container uses. The events are those of a kubelet.
func TestResizesInCluster(t *testing.T) {
	l := newLabOn(t, criconfig.Node{Name: "node", Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}}, "i:1")
	resized := func(generation int64, cores, memory string) *podspec.Desired {
		d := podspectest.FromAPI(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: web-0000-0000}\nspec:\n"+
			"  terminationGracePeriodSeconds: 1\n  containers: [{name: a, image: 'i:1', "+
			"resources: {requests: {cpu: "+cores+"}, limits: {memory: "+memory+"}}}]\n")
		d.Pod.Generation = generation
		return d
	}
	opts := admits()
	opts.ClusterPods = true
	for _, c := range []struct {
		name                string
		generation          int64
		cores, memory       string
		steps, applied, now string
		fails               bool
	}{
		{"new", 1, "1", "64Mi", "StartContainer", "1", "", false},
		{"fits", 2, "2", "64Mi", "UpdateContainer", "2", "", false},
		{"does not fit", 3, "9", "64Mi", "", "2", "waits 3", false},
		{"still does not fit", 3, "9", "64Mi", "", "2", "waits 3", false},
		{"another one does not fit", 4, "8", "64Mi", "", "2", "waits 4", false},
		{"taken back", 5, "2", "64Mi", "", "2", "", false},
		{"too little memory", 6, "2", "1Mi", "UpdateContainer", "2", "resizes 6", true},
		{"enough memory", 7, "2", "32Mi", "UpdateContainer", "2", "", false},
	} {
		d := resized(c.generation, c.cores, c.memory)
		outcome, err := l.Apply(t.Context(), d, opts)
		if err != nil || (outcome.Err() != nil) != c.fails || !strings.Contains(kinds(outcome.Plan), c.steps) {
			t.Fatalf("%s: %v, %v, %s", c.name, err, outcome.Err(), kinds(outcome.Plan))
		}
		l.server.UseMemory("a", 8<<20)
		j, err := l.layout.Pod(d.Pod.UID).Checkpoint().Read()
		if err != nil {
			t.Fatal(err)
		}
		applied := j.Applied.Pod
		if got := applied.Spec.Containers[0].Resources.Requests.Cpu().String(); got != c.applied || applied.Generation != c.generation {
			t.Errorf("%s: generation %d with %s is applied", c.name, applied.Generation, got)
		}
		if got := resizeOf(&j.Memory); got != c.now {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	h, err := l.layout.Pod("web-0000-0000").History().Read()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range h.Events {
		if text, _, found := strings.Cut(e.Message, ": {"); found {
			got = append(got, fmt.Sprint(e.Reason, " ", text, " ", max(1, e.Count)))
		}
	}
	want := []string{
		"ResizeStarted Pod resize started 1", "ResizeCompleted Pod resize completed 1",
		"ResizeDeferred Pod resize OutOfcpu 1", "ResizeDeferred Pod resize OutOfcpu 1",
		"ResizeStarted Pod resize started 1", "ResizeError Pod resize error 1",
		"ResizeStarted Pod resize started 1", "ResizeCompleted Pod resize completed 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

// TestPodLevelMemoryInCluster checks that the memory limit of a pod, and of a container that has only this limit, does
// not fall to the usage or below. If one limit is impossible, no resize of the pass begins.
func TestPodLevelMemoryInCluster(t *testing.T) {
	node := criconfig.Node{Name: "node", Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}}
	l := newLabOn(t, node, "i:1")
	pod := func(generation int64, memory, own string) *podspec.Desired {
		d := podspectest.FromAPI(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: web-0000-0000}\nspec:\n"+
			"  terminationGracePeriodSeconds: 1\n  resources: {limits: {memory: "+memory+"}, requests: {memory: 10Mi}}\n"+
			"  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1', "+
			"resources: {requests: {memory: 1Mi}, limits: {memory: "+own+"}}}]\n")
		d.Pod.Generation = generation
		return d
	}
	use := func(pod, limit, a uint64) {
		l.groups.Use("/kubepods/burstable/podweb-0000-0000", cgroup.Usage{Memory: new(pod << 20), Limit: new(limit << 20)})
		l.server.UseMemory("a", a<<20)
		l.server.UseMemory("b", 1<<20)
	}
	opts := admits()
	opts.ClusterPods = true
	if outcome, err := l.Apply(t.Context(), pod(1, "64Mi", "32Mi"), opts); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	const (
		podError = "attempting to set pod memory limit (33554432) below current usage (33554432)"
		aError   = `attempting to set container "a" memory limit (33554432) below current usage (41943040)`
	)
	for i, c := range []struct {
		memory, own       string
		pod, limit, usage uint64
		want              string
	}{
		{"32Mi", "32Mi", 16, 64, 40, aError},
		{"32Mi", "16Mi", 32, 64, 40, "[" + podError + ", " + aError + "]"},
		{"32Mi", "16Mi", 32, 64, 8, podError},
		{"64Mi", "32Mi", 32, 64, 40, ""},
		{"48Mi", "32Mi", 32, 64, 40, ""},
		{"32Mi", "32Mi", 32, 32, 8, ""},
		{"48Mi", "32Mi", 32, 32, 50, ""},
	} {
		use(c.pod, c.limit, c.usage)
		d := pod(int64(i+2), c.memory, c.own)
		outcome, err := l.Apply(t.Context(), d, opts)
		if err != nil || (outcome.Err() != nil) != (c.want != "") {
			t.Fatalf("%+v: %v, %v", c, err, outcome.Err())
		}
		j, err := l.layout.Pod(d.Pod.UID).Checkpoint().Read()
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			if j.Resizing != nil || j.Actuated.Pod.Limits.Memory().String() != c.memory {
				t.Errorf("%+v: %+v %+v", c, j.Resizing, j.Actuated)
			}
			continue
		}
		own := j.Actuated.Containers["b"]
		if j.Resizing == nil || j.Resizing.Error != "cannot decrease memory limits: "+c.want ||
			own.Limits.Memory().String() != "32Mi" {
			t.Errorf("%+v: %+v %+v", c, j.Resizing, j.Actuated)
		}
	}
}

// resizeOf describes the resize of a pod.
func resizeOf(m *model.Memory) string {
	switch {
	case m.PendingResize != nil:
		return fmt.Sprint("waits ", m.PendingResize.Generation)
	case m.Resizing != nil && strings.HasPrefix(m.Resizing.Error, "cannot decrease memory limits: "):
		return fmt.Sprint("resizes ", m.Resizing.Generation)
	case m.Resizing != nil:
		return "resizes: " + m.Resizing.Error
	}
	return ""
}

// TestCgroupOfReplacedContainer checks that the cgroup of a pod gets the limits of a container that another edit
// replaces, also if podctl does not know what the cgroup has.
func TestCgroupOfReplacedContainer(t *testing.T) {
	limited := strings.Replace(web, "image: 'i:1'", "image: 'i:1', resources: {limits: {memory: 64Mi}}", 1)
	edited := strings.NewReplacer("64Mi", "128Mi", "i:1", "i:2").Replace(limited)
	for _, known := range []bool{true, false} {
		l := newLab(t, "i:1", "i:2")
		l.apply(limited)
		file := l.layout.Pod(loadPod(t, web).Pod.UID).Checkpoint()
		read := func() *state.Checkpoint {
			j, err := file.Read()
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		if j := read(); !known {
			j.Actuated.Cgroup = nil
			if err := file.Write(j); err != nil {
				t.Fatal(err)
			}
		}
		got := kinds(l.apply(edited).Plan)
		if strings.Contains(got, "UpdatePod") != known {
			t.Errorf("known %t: %s", known, got)
		}
		if !known && kinds(l.apply(edited).Plan) != "UpdatePod" {
			t.Error("the second pass does not change the cgroup")
		}
		if memory := read().Actuated.Cgroup.Limits.Memory(); memory.String() != "128Mi" {
			t.Errorf("known %t: the cgroup has %s", known, memory)
		}
		if outcome := l.apply(edited); len(outcome.Plan.Steps) > 0 {
			t.Errorf("known %t: %s", known, kinds(outcome.Plan))
		}
	}
}
