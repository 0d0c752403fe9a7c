package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// adoptedWorld is a running pod whose container x has no record of its definition.
func adoptedWorld(t *testing.T) *modeltest.World {
	t.Helper()
	w := web(t, "  containers: [{name: x, image: i:1}, {name: own, image: i:1}]\n", "x=Running own=Running")
	w.Containers[0].SpecHash, w.Containers[0].Hash = "", "1234"
	w.Unrecorded = true
	return w
}

// TestAdoptedContainerIsReplacedAfterAnEdit checks that the container is kept at first and its adopted definition
// recorded. The next change replaces it, also if the pass before was interrupted.
func TestAdoptedContainerIsReplacedAfterAnEdit(t *testing.T) {
	w := adoptedWorld(t)
	id := w.Containers[0].ID
	first := makePlan(w)
	if len(first.Steps) > 0 || !first.Adopts || len(first.Notes) != 2 ||
		!strings.HasPrefix(first.Notes[0], "container x has no hash that podctl can read") {
		t.Errorf("steps %v, notes %q", lines(first), first.Notes)
	}
	if ids := slices.Collect(maps.Keys(first.Adopted)); !slices.Equal(ids, []string{id}) {
		t.Fatalf("adopted %v", first.Adopted)
	}
	w.Unrecorded, w.Memory.Applied, w.Memory.Adopted = false, w.Desired, first.Adopted
	if p := makePlan(w); len(p.Steps)+len(p.Notes) > 0 || p.Adopts || !maps.Equal(p.Adopted, first.Adopted) {
		t.Errorf("steps %v, notes %q, adopted %v", lines(p), p.Notes, p.Adopted)
	}
	edited(t, w, modeltest.Pod("  containers: [{name: x, image: i:1, args: [a]}, {name: own, image: i:1}]\n"))
	want := []string{"check-x BeforeStart", "stop-" + id + " SpecChanged after check-x"}
	p := makePlan(w)
	if got := lines(p); len(got) < 3 || !slices.Equal(got[:2], want) || !maps.Equal(p.Adopted, first.Adopted) ||
		p.Steps[1].Message != `args: + ["a"]` {
		t.Errorf("%q (%s), adopted %v", got, p.Steps[1].Message, p.Adopted)
	}
	// The pass was interrupted after it was recorded.
	w.Memory.Applied = w.Desired
	if got := lines(makePlan(w)); len(got) < 3 || !slices.Equal(got[:2], want) {
		t.Errorf("again: %q", got)
	}
	w.Containers = w.Containers[1:]
	if p := makePlan(w); len(p.Adopted) > 0 {
		t.Errorf("adopted %v after the container was removed", p.Adopted)
	}
}

// TestContainersWithHashAreNotAdopted checks that a container with a readable hash is not adopted.
func TestContainersWithHashAreNotAdopted(t *testing.T) {
	w := adoptedWorld(t)
	w.Containers[0].Hash = spechash.Kubelet(&v1.Container{Name: "x", Image: "i:1"})
	if p := makePlan(w); len(p.Adopted) > 0 || len(p.Notes) != 1 {
		t.Errorf("%v, %q", p.Adopted, p.Notes)
	}
}

// TestReportedResources checks that reported resources are compared with the manifest if podctl has no
// record. Differences change in place. Without an edit nothing restarts.
func TestReportedResources(t *testing.T) {
	const given = "{limits: {cpu: 100m, memory: 64Mi}, requests: {cpu: 50m, memory: 32Mi}}"
	fromRuntime := func(limits, requests v1.ResourceList) *v1.ResourceRequirements {
		return &v1.ResourceRequirements{Limits: limits, Requests: requests}
	}
	for name, c := range map[string]struct {
		fields      string
		fromRuntime *v1.ResourceRequirements
		kubelet     bool
		last        string
		changes     string
		kept        int
		restarts    bool
	}{
		"the same": {given, fromRuntime(amounts("cpu=100m", "memory=64Mi"), amounts("cpu=50m")), true, "", "", 0, false},
		"more memory": {
			given,
			fromRuntime(amounts("cpu=100m", "memory=32Mi"), amounts("cpu=50m")),
			true,
			"",
			"resources.limits.memory: 32Mi -> 64Mi",
			0,
			false,
		},
		"of podctl's making": {
			given,
			fromRuntime(amounts("cpu=100m", "memory=32Mi"), amounts("cpu=50m")),
			false,
			"",
			"resources.limits.memory: 32Mi -> 64Mi",
			0,
			false,
		},
		"a request of cpu": {
			given,
			fromRuntime(amounts("cpu=100m", "memory=64Mi"), amounts("cpu=20m")),
			true,
			"",
			"resources.requests.cpu: 20m -> 50m",
			0,
			false,
		},
		"none, and none reported": {"{}", fromRuntime(nil, amounts("cpu=2m")), true, "", "", 0, false},
		"less than there is": {
			"{limits: {cpu: 1m}, requests: {cpu: 1m}}",
			fromRuntime(amounts("cpu=10m"), amounts("cpu=2m")),
			true,
			"",
			"",
			0,
			false,
		},
		"a limit, no request":          {"{limits: {cpu: 1}}", fromRuntime(amounts("cpu=1"), amounts("cpu=1")), true, "", "", 0, false},
		"a limit that was not applied": {"{}", fromRuntime(amounts("memory=64Mi"), amounts("cpu=2m")), false, "", "", 1, false},
		"of a kubelet's": {
			"{}",
			fromRuntime(amounts("memory=64Mi"), amounts("cpu=2m")),
			true,
			"",
			"resources.limits.memory: - 64Mi",
			0,
			false,
		},
		"a limit that was": {
			"{}",
			fromRuntime(amounts("memory=64Mi"), amounts("cpu=2m")),
			false,
			"{limits: {memory: 64Mi}}",
			"resources.limits.memory: - 64Mi, resources.requests.memory: - 64Mi",
			0,
			true,
		},
		"a policy": {
			given + ", resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]",
			fromRuntime(amounts("cpu=100m", "memory=32Mi"), amounts("cpu=50m")),
			true,
			"",
			"",
			1,
			false,
		},
		"nothing reported": {given, nil, false, "", "", 0, false},
		"nothing reported, edited": {
			given,
			nil,
			false,
			"{limits: {cpu: 100m, memory: 32Mi}, requests: {cpu: 50m, memory: 32Mi}}",
			"resources.limits.memory: 32Mi -> 64Mi",
			0,
			false,
		},
		"a kubelet's, not reported": {
			"{limits: {cpu: 1}, requests: {cpu: 1}}",
			nil,
			true,
			"",
			"resources.limits.cpu: + 1, resources.requests.cpu: + 1",
			0,
			false,
		},
	} {
		w := web(t, "  containers: [{name: x, image: i:1, resources: "+c.fields+"}]\n", "x=Running")
		w.Unrecorded = c.last == ""
		if c.last != "" {
			w.Memory.Applied = modeltest.Load(t, modeltest.Pod("  containers: [{name: x, image: i:1, resources: "+c.last+"}]\n"))
		}
		w.Containers[0].Resources = c.fromRuntime
		if c.kubelet {
			w.Containers[0].SpecHash = ""
		}
		ref, _ := podspec.FindContainer(w.Desired.Pod, "x")
		r := resizingOf(inputOf(w).State(), ref.Container, &w.Containers[0])
		var changes []string
		for _, change := range r.changes() {
			changes = append(changes, change.String())
		}
		if got := strings.Join(changes, ", "); got != c.changes || len(r.kept) != c.kept || r.restarts() != c.restarts {
			t.Errorf("%s: %q, %d kept, restarts %t", name, got, len(r.kept), r.restarts())
		}
		p := makePlan(w)
		if found, ok := p.Found["x"]; (c.kept > 0 && c.fromRuntime != nil) != (ok && found == nil) {
			t.Errorf("%s: found %v", name, p.Found)
		}
		isKept := func(n string) bool { return strings.HasPrefix(n, "container x does not run with the resources") }
		if slices.ContainsFunc(p.Notes, isKept) != (c.kept > 0) {
			t.Errorf("%s: notes %q", name, p.Notes)
		}
	}
}

// TestFoundResources checks which resources a plan finds for a container without a record, and that it finds none for
// others.
func TestFoundResources(t *testing.T) {
	const given = "{limits: {memory: 64Mi}, requests: {memory: 32Mi}}"
	reported := func(pairs ...string) *v1.ResourceRequirements {
		return &v1.ResourceRequirements{Limits: amounts(pairs...), Requests: amounts("cpu=2m")}
	}
	for name, c := range map[string]struct {
		fields   string
		change   func(w *modeltest.World)
		reported *v1.ResourceRequirements
		want     string
	}{
		"as in the manifest": {given, nil, reported("memory=64Mi"), "limits map[memory:64Mi] requests map[memory:32Mi]"},
		"more than in the manifest": {
			given, nil, reported("memory=64Mi", "cpu=1"), "stay",
		},
		"other than in the manifest": {
			given, nil, reported("memory=48Mi"), "limits map[memory:48Mi] requests map[memory:32Mi]",
		},
		"not reported": {given, nil, nil, "none"},
		"not reported, of a kubelet": {given, func(w *modeltest.World) {
			w.Containers[0].SpecHash, w.Containers[0].Hash = "", "1234"
		}, nil, "limits map[] requests map[]"},
		"with a record": {given, func(w *modeltest.World) {
			w.Memory.Actuated = &model.Actuated{Containers: map[string]v1.ResourceRequirements{"x": {}}}
		}, reported("memory=48Mi"), "none"},
		"applied by podctl": {given, func(w *modeltest.World) { w.Memory.Applied = w.Desired }, nil, "none"},
		"exited":            {given, func(w *modeltest.World) { w.Containers[0].State = model.Exited }, reported("memory=64Mi"), "none"},
		"gone":              {given, func(w *modeltest.World) { w.Containers = nil }, nil, "none"},
	} {
		w := web(t, "  containers: [{name: x, image: i:1, resources: "+c.fields+"}]\n", "x=Running")
		w.Unrecorded, w.Containers[0].Resources = true, c.reported
		if c.change != nil {
			c.change(w)
		}
		found, ok := makePlan(w).Found["x"]
		got := "none"
		switch {
		case ok && found == nil:
			got = "stay"
		case ok:
			got = fmt.Sprintf("limits %v requests %v", textsOf(found.Limits), textsOf(found.Requests))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// textsOf returns amounts as texts.
func textsOf(list v1.ResourceList) map[v1.ResourceName]string {
	texts := map[v1.ResourceName]string{}
	for name, amount := range list {
		texts[name] = amount.String()
	}
	return texts
}
