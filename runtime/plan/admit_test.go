package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/podstatus"
)

// sized returns a pod that requests the given number of cores.
func sized(t *testing.T, name, cores string) *podspec.Desired {
	t.Helper()
	d := modeltest.Load(t,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", uid: "+name+
			"-0000-0000}\nspec:\n  containers: [{name: a, image: i:1, resources: {requests: {cpu: "+cores+"}}}]\n")
	return d
}

// bench is a machine with four cores and a pod to admit.
type bench struct {
	*modeltest.World
	how *Admission
}

func newBench(d *podspec.Desired) *bench {
	w := modeltest.New(d)
	w.Capacity = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}
	return &bench{w, &Admission{Settings: admission.Settings{MaxPods: 110}, Final: true}}
}

// others adds admitted pods.
func (b *bench) others(pods ...*podspec.Desired) *bench {
	for _, d := range pods {
		b.Others = append(b.Others, admission.TakenBy(d.Pod))
	}
	return b
}

// runs makes the pod run as it was applied.
func (b *bench) runs(applied *podspec.Desired) *bench {
	b.Memory.Applied = applied
	b.Sandbox("s0", 0, model.SandboxReady)
	b.Container("s0", "a", 0, model.Running)
	return b
}

func (b *bench) input() *Input {
	return &Input{
		Input: podstatus.Input{Desired: b.Desired, Observed: b.Observed, Now: modeltest.Noon()},
		Pod:   model.RefOf(b.Desired.Pod), Options: Options{Admission: b.how},
	}
}

// result describes the plan in a few words.
func result(p *Plan) string {
	var words []string
	for i := range p.Steps {
		words = append(words, string(p.Steps[i].Kind))
	}
	for i := range p.Holds {
		words = append(words, string(p.Holds[i].Reason))
	}
	if p.Rejection != nil {
		words = append(words, "rejected")
	}
	if p.Refused() {
		words = append(words, "refused")
	}
	if p.Unapplied() {
		words = append(words, "unapplied")
	}
	return strings.Join(words, " ")
}

const starts = "CheckContainer RunSandbox StartContainer"

// TestAdmission checks that a new pod that does not fit is rejected until its manifest changes, and that an admitted
// pod stays admitted, whatever came later.
func TestAdmission(t *testing.T) {
	two, three, four := sized(t, "web", "2"), sized(t, "web", "3"), sized(t, "web", "4")
	rejection := &model.Rejection{
		Reason:   "OutOfcpu",
		Message:  "m",
		Settings: "max-pods=110",
		At:       modeltest.Noon(),
	}
	other := sized(t, "other", "2")
	for name, c := range map[string]struct {
		bench  *bench
		change func(*bench)
		want   string
	}{
		"the pod fits":         {newBench(two).others(other), nil, starts},
		"the pod does not fit": {newBench(three).others(other), nil, "OutOfcpu rejected"},
		"no admission":         {newBench(three).others(other), func(b *bench) { b.how = nil }, starts},
		"rejected before": {
			newBench(two),
			func(b *bench) { b.Memory.Applied, b.Memory.Rejection = two, rejection },
			"OutOfcpu rejected",
		},
		"and is checked again": {
			newBench(two),
			func(b *bench) { b.Memory.Applied, b.Memory.Rejection, b.how.Final = two, rejection, false },
			starts,
		},
		"and is edited": {
			newBench(two).others(other),
			func(b *bench) { b.Memory.Applied, b.Memory.Rejection = three, rejection },
			starts,
		},
		"and is edited badly": {
			newBench(four).others(other),
			func(b *bench) { b.Memory.Applied, b.Memory.Rejection = three, rejection },
			"OutOfcpu rejected",
		},
		"and the settings have changed": {
			newBench(two),
			func(b *bench) { b.Memory.Applied, b.Memory.Rejection, b.how.MaxPods = two, rejection, 111 },
			starts,
		},
		"without admission": {
			newBench(two),
			func(b *bench) { b.Memory.Applied, b.Memory.Rejection, b.how = two, rejection, nil },
			starts,
		},
		"admitted before":          {newBench(three).others(other), func(b *bench) { b.Memory.Applied = three }, starts},
		"the pod runs":             {newBench(three).others(other).runs(three), nil, ""},
		"running without a record": {newBench(three).others(other).runs(nil), nil, ""},
		"an edit that fits": {
			newBench(sized(t, "web", "2500m")).others(sized(t, "other", "1")).runs(two),
			nil,
			"UpdateContainer UpdatePod",
		},
		"an edit that does not": {newBench(three).others(other).runs(two), nil, "OutOfcpu refused unapplied"},
		"of a pod that was not created yet": {
			newBench(three).others(other),
			func(b *bench) { b.Memory.Applied = two },
			"OutOfcpu rejected",
		},
		"the other is deleted": {
			newBench(three).others(other),
			func(b *bench) { b.Others[0].Terminating = true },
			"OutOfcpu refused unapplied",
		},
		"the other is not needed": {
			newBench(three).others(other),
			func(b *bench) { b.how.Terminating = []types.UID{other.Pod.UID} },
			"OutOfcpu refused unapplied",
		},
		"resources still missing after its deletion": {
			newBench(sized(t, "web", "5")).others(other),
			func(b *bench) { b.Others[0].Terminating = true },
			"OutOfcpu rejected",
		},
		"an earlier pod that fits": {newBench(three), func(b *bench) { b.how.First = []*podspec.Desired{other} }, "OutOfcpu rejected"},
		"an earlier pod that does not fit": {
			newBench(three),
			func(b *bench) { b.how.First = []*podspec.Desired{sized(t, "other", "9")} },
			starts,
		},
		"an admitted earlier pod": {newBench(two).others(other), func(b *bench) { b.how.First = []*podspec.Desired{other} }, starts},
	} {
		if c.change != nil {
			c.change(c.bench)
		}
		if got := result(Make(c.bench.input())); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRejectionMessage checks that the hold has the message of the status, and that a second rejection for the same
// reason keeps the first one.
func TestRejectionMessage(t *testing.T) {
	b := newBench(sized(t, "web", "3")).others(sized(t, "other", "2"))
	b.how.Final = false
	p := Make(b.input())
	const why = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
	want := &model.Rejection{Reason: "OutOfcpu", Message: why, Settings: "max-pods=110", At: modeltest.Noon()}
	if diff := cmp.Diff(want, p.Rejection); diff != "" {
		t.Error(diff)
	}
	if h := p.Holds[0]; h.Message != "Pod was rejected: "+why || h.Status != why || !h.Blocking || h.Container != "" {
		t.Errorf("%+v", h)
	}
	p.Rejection.At = modeltest.Noon().Add(-time.Hour)
	b.Memory.Applied, b.Memory.Rejection = b.Desired, p.Rejection
	if again := Make(b.input()); again.Rejection != p.Rejection {
		t.Errorf("again: %+v", again.Rejection)
	}
	b.Others[0].Terminating = true
	if h := Make(b.input()).Holds[0]; h.Blocking || h.Message != why+"; podctl tries again when pod default/other is gone" {
		t.Errorf("hold of a pod that waits for another: %+v", h)
	}
}

// TestRefusedEdits checks that a pod whose edit is not admitted continues as applied, and that a hold explains it.
func TestRefusedEdits(t *testing.T) {
	before := sized(t, "web", "2")
	b := newBench(sized(t, "web", "3")).others(sized(t, "other", "2")).runs(before)
	hold, kept := b.input().Refused()
	if hold == nil || hold.Unapplied || !strings.HasSuffix(hold.Message, "; the edit is not applied, and the pod continues unchanged") {
		t.Fatalf("%+v", hold)
	}
	if !kept.SameManifest(before) {
		t.Error("another version keeps running")
	}
	in := b.input()
	in.Desired, in.Options = before, Options{Refused: hold}
	if got := result(Make(in)); got != "OutOfcpu refused" {
		t.Error(got)
	}
	ended := &in.Observed.Containers[0]
	ended.State, ended.ExitCode, ended.FinishedAt = model.Exited, 1, modeltest.Noon().Add(-time.Hour)
	if got := result(Make(in)); got != "CheckContainer StartContainer OutOfcpu refused" {
		t.Errorf("pod with an exited container: %s", got)
	}
	for name, other := range map[string]*Input{
		"rejected pod":  newBench(sized(t, "web", "5")).input(),
		"one that fits": newBench(before).input(),
		"deleted pod":   {Options: Options{Admission: b.how}},
	} {
		if hold, _ := other.Refused(); hold != nil {
			t.Errorf("%s: %+v", name, hold)
		}
	}
}

// TestRefusedResizes checks that a resize of a pod of the API server that does not fit waits: the pod keeps its resources
// and gets all other edits. Edits of other fields are not admitted again, and a pod that does not run is not rejected.
func TestRefusedResizes(t *testing.T) {
	inAPI := func(cores, image string, generation int64) *podspec.Desired {
		d := podspectest.FromAPI(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: web-0000-0000}\nspec:\n"+
			"  containers: [{name: a, image: '"+image+"', resources: {requests: {cpu: "+cores+"}}}]\n")
		d.Pod.Generation = generation
		return d
	}
	before := inAPI("2", "i:1", 1)
	b := newBench(inAPI("3", "i:2", 2)).others(sized(t, "other", "2")).runs(before)
	for _, state := range []model.ContainerState{model.Running, model.Exited} {
		b.Containers[0].State = state
		in := b.input()
		hold, kept := in.Refused()
		if hold == nil {
			t.Fatalf("%s: the resize does not wait", state)
		}
		const message = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
		want := &model.PendingResize{Reason: "OutOfcpu", Message: message, Generation: 2}
		if diff := cmp.Diff(want, hold.Resize); diff != "" {
			t.Errorf("%s (-want +got)\n%s", state, diff)
		}
		event := `Pod resize OutOfcpu: {"containers":[{"name":"a","resources":{"requests":{"cpu":"3"}}}],"generation":2,"error":"` +
			message + `"}`
		if hold.Status != event {
			t.Errorf("%s: event %s", state, hold.Status)
		}
		if !kept.SameManifest(inAPI("2", "i:2", 0)) || kept.Pod.Generation != 2 {
			t.Errorf("%s: the pod that continues is %+v", state, kept.Pod)
		}
		in.Desired, in.Options = kept, Options{Refused: hold}
		if p := Make(in); p.PendingResize != hold.Resize || len(p.Record)+len(p.Steps) == 0 || p.Rejection != nil {
			t.Errorf("%s: %+v", state, p)
		}
		in.Desired, in.Options, in.Observed.Memory.PendingResize = before, Options{}, hold.Resize
		if p := Make(in); p.PendingResize != nil {
			t.Errorf("%s: the resize waits although it was taken back", state)
		}
	}
	b.Capacity = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	b.Desired = inAPI("2", "i:2", 2)
	b.Desired.Pod.Labels = map[string]string{v1.LabelOSStable: "windows"}
	if hold, _ := b.input().Refused(); hold != nil {
		t.Errorf("an edit of other fields: %+v", hold)
	}
}

// TestOrderOfResizes checks that a resize leaves the resources to waiting resizes that come before it and fit. One that
// does not fit takes nothing.
func TestOrderOfResizes(t *testing.T) {
	inAPI := func(name, cores string) *podspec.Desired {
		return podspectest.FromAPI(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", uid: "+name+"-0000-0000}\nspec:\n"+
			"  containers: [{name: a, image: 'i:1', resources: {requests: {cpu: "+cores+"}}}]\n")
	}
	first := inAPI("first", "1")
	for cores, want := range map[string]bool{"": false, "3": true, "4": false} {
		b := newBench(inAPI("web", "2")).others(first).runs(inAPI("web", "1"))
		if cores != "" {
			b.how.Resizes = []Resize{{Wanted: inAPI("first", cores), Before: first.Pod}}
		}
		if hold, _ := b.input().Refused(); (hold != nil) != want {
			t.Errorf("an earlier resize to %q cores: %+v", cores, hold)
		}
	}
}

// TestStoppedPodsStayRejected checks that a temporary stop admits no pod.
func TestStoppedPodsStayRejected(t *testing.T) {
	b := newBench(sized(t, "web", "2"))
	b.Memory.Applied, b.Memory.Rejection = b.Desired, &model.Rejection{Reason: "OutOfcpu"}
	in := b.input()
	in.Options.Stop = true
	if p := Make(in); p.Rejection != b.Memory.Rejection || len(p.Steps) > 0 {
		t.Errorf("%+v", p)
	}
}
