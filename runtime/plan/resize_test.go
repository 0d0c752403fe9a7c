package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

func amounts(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for _, pair := range pairs {
		name, amount, _ := strings.Cut(pair, "=")
		list[v1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// TestResizing checks the differences from the values applied last, and their effect.
func TestResizing(t *testing.T) {
	for name, c := range map[string]struct {
		fields, pod     string
		applied         v1.ResourceRequirements
		kubelet         bool
		changes         []string
		restarts, grows bool
	}{
		"nothing": {
			"{limits: {cpu: 1}}",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1"), Requests: amounts("cpu=1")},
			false,
			nil,
			false,
			false,
		},
		"in other words": {
			"{limits: {cpu: 1}}",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1000m"), Requests: amounts("cpu=1000m")},
			false,
			nil,
			false,
			false,
		},
		"more cpu": {
			"{limits: {cpu: 2}, requests: {cpu: 1}}",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1"), Requests: amounts("cpu=1")},
			false,
			[]string{"resources.limits.cpu: 1 -> 2"},
			false,
			true,
		},
		"a request": {
			"{requests: {cpu: 2}}",
			"",
			v1.ResourceRequirements{Requests: amounts("cpu=1")},
			false,
			[]string{"resources.requests.cpu: 1 -> 2"},
			false,
			false,
		},
		"less memory": {
			"{limits: {memory: 1Mi}, requests: {memory: 1Mi}}",
			"",
			v1.ResourceRequirements{Limits: amounts("memory=2Mi"), Requests: amounts("memory=1Mi")},
			false,
			[]string{"resources.limits.memory: 2Mi -> 1Mi"},
			false,
			false,
		},
		"a limit that comes": {
			"{limits: {cpu: 1}, requests: {cpu: 1}}",
			"",
			v1.ResourceRequirements{Requests: amounts("cpu=1")},
			false,
			[]string{"resources.limits.cpu: + 1"},
			false,
			true,
		},
		"a removed limit": {
			"{requests: {cpu: 1}}",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1"), Requests: amounts("cpu=1")},
			false,
			[]string{"resources.limits.cpu: - 1"},
			true,
			false,
		},
		"and a kubelet's": {
			"{requests: {cpu: 1}}",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1"), Requests: amounts("cpu=1")},
			true,
			[]string{"resources.limits.cpu: - 1"},
			false,
			false,
		},
		"a policy": {
			"{limits: {cpu: 2}, requests: {cpu: 1}}, resizePolicy: [{resourceName: cpu, " +
				"restartPolicy: RestartContainer}]",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1"), Requests: amounts("cpu=1")},
			false,
			[]string{"resources.limits.cpu: 1 -> 2"},
			true,
			true,
		},
		"another's policy": {
			"{limits: {cpu: 2}, requests: {cpu: 1}}, resizePolicy: [{resourceName: memory, " +
				"restartPolicy: RestartContainer}]",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1"), Requests: amounts("cpu=1")},
			false,
			[]string{"resources.limits.cpu: 1 -> 2"},
			false,
			true,
		},
		"memory before cpu": {
			"{limits: {cpu: 2, memory: 2Mi}}",
			"",
			v1.ResourceRequirements{Limits: amounts("cpu=1", "memory=1Mi"), Requests: amounts("cpu=2", "memory=2Mi")},
			false,
			[]string{"resources.limits.memory: 1Mi -> 2Mi", "resources.limits.cpu: 1 -> 2"},
			false,
			true,
		},
		"a limit of the pod's": {
			"{}",
			"  resources: {limits: {cpu: 4}}\n",
			v1.ResourceRequirements{},
			false,
			[]string{"resources.limits.cpu: + 4"},
			false,
			true,
		},
	} {
		w := web(t, c.pod+"  containers: [{name: x, image: i:1, resources: "+c.fields+"}]\n", "x=Running")
		w.Memory.Actuated = &model.Actuated{Containers: map[string]v1.ResourceRequirements{"x": c.applied}}
		if c.kubelet {
			w.Containers[0].SpecHash = ""
		}
		ref, _ := podspec.FindContainer(w.Desired.Pod, "x")
		r := resizingOf(inputOf(w).State(), ref.Container, &w.Containers[0])
		var changes []string
		for _, change := range r.changes() {
			changes = append(changes, change.String())
		}
		if diff := cmp.Diff(c.changes, changes); diff != "" || r.restarts() != c.restarts || r.grows() != c.grows {
			t.Errorf("%s: restarts %t, grows %t, changes (-want +got)\n%s", name, r.restarts(), r.grows(), diff)
		}
	}
}

// TestNothingIsResizedWithoutARecord checks that a pod without recorded values is not resized.
func TestNothingIsResizedWithoutARecord(t *testing.T) {
	w := web(t, "  resources: {limits: {cpu: 4}}\n  containers: [{name: x, image: i:1, resources: {limits: {cpu: 2}}}]\n", "x=Running")
	pod := inputOf(w).State()
	ref, _ := podspec.FindContainer(w.Desired.Pod, "x")
	if r := resizingOf(pod, ref.Container, &w.Containers[0]); len(r.resized) > 0 || r.restarts() || podGrows(pod) || podResized(pod) {
		t.Errorf("%+v", r)
	}
}

// TestPodResized checks that the pod's own resources are compared with the applied ones.
func TestPodResized(t *testing.T) {
	for name, c := range map[string]struct {
		spec           string
		applied        *v1.ResourceRequirements
		resized, grows bool
	}{
		"none": {"", nil, false, false},
		"the same": {
			"  resources: {limits: {cpu: 4}, requests: {cpu: 1}}\n",
			&v1.ResourceRequirements{Limits: amounts("cpu=4"), Requests: amounts("cpu=1")},
			false,
			false,
		},
		"more": {
			"  resources: {limits: {cpu: 4}, requests: {cpu: 1}}\n",
			&v1.ResourceRequirements{Limits: amounts("cpu=3"), Requests: amounts("cpu=1")},
			true,
			true,
		},
		"less": {
			"  resources: {limits: {cpu: 4}, requests: {cpu: 1}}\n",
			&v1.ResourceRequirements{Limits: amounts("cpu=5"), Requests: amounts("cpu=1")},
			true,
			false,
		},
		"another request": {
			"  resources: {limits: {cpu: 4}, requests: {cpu: 1}}\n",
			&v1.ResourceRequirements{Limits: amounts("cpu=4"), Requests: amounts("cpu=2")},
			true,
			false,
		},
		"they came": {"  resources: {limits: {cpu: 4}, requests: {cpu: 1}}\n", nil, true, true},
		"they went": {"", &v1.ResourceRequirements{Limits: amounts("cpu=4")}, true, false},
		"one more": {
			"  resources: {limits: {cpu: 4, memory: 1Gi}, requests: {cpu: 1}}\n",
			&v1.ResourceRequirements{Limits: amounts("cpu=4"), Requests: amounts("cpu=1")},
			true,
			true,
		},
	} {
		w := web(t, c.spec+"  containers: [{name: x, image: i:1}]\n", "x=Running")
		w.Memory.Actuated = &model.Actuated{Containers: map[string]v1.ResourceRequirements{}, Pod: c.applied}
		pod := inputOf(w).State()
		if podResized(pod) != c.resized || podGrows(pod) != c.grows {
			t.Errorf("%s: resized %t, grows %t", name, podResized(pod), podGrows(pod))
		}
	}
}

// TestPodGrowsBeforeItsContainers checks that a pod grows before its containers and shrinks after them. Containers that
// shrink go first, one after the other.
func TestPodGrowsBeforeItsContainers(t *testing.T) {
	spec := "  containers: [{name: a, image: i:1, resources: {limits: {cpu: %d}, requests: {cpu: 1m}}}, {name: b, " +
		"image: i:1, resources: {limits: {cpu: %d}, requests: {cpu: 1m}}}]\n"
	for name, c := range map[string]struct {
		before, after [2]int
		want          []string
	}{
		"both get more": {
			[2]int{1, 1},
			[2]int{2, 2},
			[]string{
				"resize-pod Resized",
				"update-a Resized after resize-pod",
				"update-b Resized after resize-pod,update-a",
			},
		},
		"both get less": {
			[2]int{2, 2},
			[2]int{1, 1},
			[]string{
				"update-a Resized",
				"update-b Resized after update-a",
				"resize-pod Resized after update-a,update-b",
			},
		},
		"one gives to other": {
			[2]int{1, 2},
			[2]int{2, 1},
			[]string{
				"update-b Resized",
				"update-a Resized after update-b",
				"resize-pod Resized after update-b,update-a",
			},
		},
	} {
		w := web(t, fmt.Sprintf(spec, c.before[0], c.before[1]), "a=Running b=Running")
		w.Memory.Actuated = actuatedOf(w)
		edited(t, w, modeltest.Pod(fmt.Sprintf(spec, c.after[0], c.after[1])))
		if diff := cmp.Diff(c.want, lines(makePlan(w))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestCPUShrinksFirst checks that a running container gives up cpu before its pod, also if the pod gets more memory.
func TestCPUShrinksFirst(t *testing.T) {
	spec := "  containers: [{name: a, image: i:1, resources: {limits: {cpu: %d, memory: %dGi}}}]\n"
	w := web(t, fmt.Sprintf(spec, 2, 1), "a=Running")
	w.Memory.Actuated = actuatedOf(w)
	edited(t, w, modeltest.Pod(fmt.Sprintf(spec, 1, 2)))
	if diff := cmp.Diff([]string{"update-a Resized", "resize-pod Resized after update-a"}, lines(makePlan(w))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestResizeWaitsForStops checks that a pod and its containers shrink after a container with the old resources has
// stopped.
func TestResizeWaitsForStops(t *testing.T) {
	spec := "  containers: [{name: a, image: i:1, resources: {limits: {memory: %[1]dGi}}, resizePolicy: [{resourceName: memory, " +
		"restartPolicy: RestartContainer}]}, {name: b, image: i:1, resources: {limits: {memory: %[1]dGi}}}]\n"
	w := web(t, fmt.Sprintf(spec, 2), "a=Running b=Running")
	w.Memory.Actuated = actuatedOf(w)
	edited(t, w, modeltest.Pod(fmt.Sprintf(spec, 1)))
	p := makePlan(w)
	for _, id := range []string{"resize-pod", "update-b"} {
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == id })
		if i < 0 || !slices.Contains(p.Steps[i].Needs, Edge{Step: "stop-a-0-of-s0"}) {
			t.Errorf("%s does not wait until a has stopped: %q", id, lines(p))
		}
	}
}

// TestCgroupOutdated checks that the cgroup of a pod changes with containers that get their resources by a start: before
// them if they get more memory, after the stops if they get less, and not while one keeps its old resources.
func TestCgroupOutdated(t *testing.T) {
	spec := "  containers: [{name: a, image: '%s', resources: {limits: {memory: %s, cpu: %s}, requests: {cpu: 1m}}}]\n"
	const stop, check = "stop-a-0-of-s0", "check-a BeforeStart|stop-a-0-of-s0 SpecChanged after check-a|"
	for name, c := range map[string]struct{ state, before, after, want string }{
		"it has ended": {
			"a=Exited:1", fmt.Sprintf(spec, "i:1", "1Gi", "1"), fmt.Sprintf(spec, "i:1", "2Gi", "1"),
			"check-a BeforeStart|resize-pod Resized|start-a Exited after check-a,resize-pod",
		},
		"another image": {
			"a=Running", fmt.Sprintf(spec, "i:1", "2Gi", "1"), fmt.Sprintf(spec, "i:2", "1Gi", "1"), check +
				"start-a SpecChanged after check-a," + stop + " created after check-a once exited " + stop +
				"|resize-pod Resized after " + stop,
		},
		"more cpu and less memory": {
			"a=Running", fmt.Sprintf(spec, "i:1", "2Gi", "1"), fmt.Sprintf(spec, "i:2", "1Gi", "2"), check +
				"resize-pod Resized after " + stop + "|start-a SpecChanged after check-a,resize-pod," +
				stop + " created after check-a,resize-pod once exited " + stop,
		},
		"more memory and less cpu": {
			"a=Running", fmt.Sprintf(spec, "i:1", "1Gi", "2"), fmt.Sprintf(spec, "i:2", "2Gi", "1"), check +
				"resize-pod Resized after " + stop + "|start-a SpecChanged after check-a,resize-pod," +
				stop + " created after check-a,resize-pod once exited " + stop,
		},
		"a ConfigMap is missing": {
			"a=Running", fmt.Sprintf(spec, "i:1", "2Gi", "1"),
			fmt.Sprintf(strings.Replace(spec, "image", "envFrom: [{configMapRef: {name: absent}}], image", 1), "i:1", "1Gi", "1"),
			"hold a CreateContainerConfigError ConfigMap default/absent is missing: apply a file that has it, or add it with " +
				"--configmap FILE",
		},
		"a ConfigMap is missing, and it gets more": {
			"a=Running", fmt.Sprintf(spec, "i:1", "1Gi", "1"),
			fmt.Sprintf(strings.Replace(spec, "image", "envFrom: [{configMapRef: {name: absent}}], image", 1), "i:1", "2Gi", "1"),
			"resize-pod Resized|hold a CreateContainerConfigError ConfigMap default/absent is missing: apply a file that has " +
				"it, or add it with --configmap FILE",
		},
		"nothing has changed": {
			"a=Running", fmt.Sprintf(spec, "i:1", "2Gi", "1"), fmt.Sprintf(spec, "i:1", "2Gi", "1"), "",
		},
	} {
		w := web(t, c.before, c.state)
		w.Memory.Actuated, w.CgroupExists = actuatedOf(w), new(true)
		w.Memory.Actuated.Cgroup = new(podspec.Totals(w.Desired.Pod))
		edited(t, w, modeltest.Pod(c.after))
		if got := strings.Join(lines(makePlan(w)), "|"); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
