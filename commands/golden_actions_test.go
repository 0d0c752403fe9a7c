package commands

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// goldenActions are the decisions of a kubelet, or those of podctl in the same form.
type goldenActions struct {
	KillPod         bool        `json:"killPod"`
	CreateSandbox   bool        `json:"createSandbox"`
	SandboxID       string      `json:"sandboxId"`
	Attempt         uint32      `json:"attempt"`
	InitStarts      []string    `json:"nextInitContainersToStart"`
	Starts          []string    `json:"containersToStart"`
	EphemeralStarts []string    `json:"ephemeralContainersToStart"`
	Kills           []goldenRef `json:"containersToKill"`
	Resets          []goldenRef `json:"containersToReset"`
	Updates         struct {
		CPU    []goldenRef `json:"cpu"`
		Memory []goldenRef `json:"memory"`
	} `json:"containersToUpdate"`
	UpdatePod      bool `json:"updatePodResources"`
	UpdatePodLevel bool `json:"updatePodLevelResources"`
	KillTargets    struct {
		Containers []string `json:"containers"`
		Sandboxes  []string `json:"sandboxes"`
	} `json:"killPodTargets"`
}

type goldenRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kill bool   `json:"kill"`
}

// actionsOf converts a plan into the kubelet's form.
func actionsOf(p *plan.Plan) *goldenActions {
	a := &goldenActions{KillPod: p.KillPod, CreateSandbox: p.CreateSandbox, SandboxID: p.SandboxID, Attempt: p.Attempt}
	for i := range p.Steps {
		a.add(&p.Steps[i])
	}
	return a
}

func (a *goldenActions) add(s *plan.Step) {
	ref := goldenRef{ID: s.ContainerID, Name: s.Container}
	switch {
	case s.Reason == model.RestartAllContainers:
		a.addReset(s, ref)
	case s.Kind == plan.StartContainer:
		switch s.ContainerType {
		case podspec.Init, podspec.Sidecar:
			a.InitStarts = append(a.InitStarts, s.Container)
		case podspec.Regular:
			a.Starts = append(a.Starts, s.Container)
		case podspec.Ephemeral:
			a.EphemeralStarts = append(a.EphemeralStarts, s.Container)
		}
	case s.Kind == plan.StopContainer && a.KillPod:
		a.KillTargets.Containers = append(a.KillTargets.Containers, s.ContainerID)
	case s.Kind == plan.StopContainer && s.Reason != model.RemovedFromSpec:
		a.Kills = append(a.Kills, ref)
	case s.Kind == plan.StopSandbox:
		a.KillTargets.Sandboxes = append(a.KillTargets.Sandboxes, s.SandboxID)
	case s.Kind == plan.UpdateContainer:
		a.addUpdate(s, ref)
	case s.Kind == plan.UpdatePod:
		a.UpdatePod = true
	}
}

func (a *goldenActions) addReset(s *plan.Step, ref goldenRef) {
	if s.Kind == plan.StopContainer {
		a.Kills = append(a.Kills, ref)
		return
	}
	i := slices.IndexFunc(a.Kills, func(k goldenRef) bool { return k.ID == ref.ID })
	if i >= 0 {
		a.Kills, ref.Kill = slices.Delete(a.Kills, i, i+1), true
	}
	a.Resets = append(a.Resets, ref)
}

func (a *goldenActions) addUpdate(s *plan.Step, ref goldenRef) {
	for _, c := range s.Changes {
		switch c.Path {
		case "resources.limits.cpu", "resources.requests.cpu":
			if !slices.Contains(a.Updates.CPU, ref) {
				a.Updates.CPU = append(a.Updates.CPU, ref)
			}
		case "resources.limits.memory", "resources.requests.memory":
			if !slices.Contains(a.Updates.Memory, ref) {
				a.Updates.Memory = append(a.Updates.Memory, ref)
			}
		}
	}
}

// comparable normalises the actions: kills are sorted, and a pod that is killed has no kills of single containers.
func (a *goldenActions) comparable() *goldenActions {
	slices.SortFunc(a.Kills, func(x, y goldenRef) int { return cmp.Compare(x.ID, y.ID) })
	slices.Sort(a.KillTargets.Containers)
	slices.Sort(a.KillTargets.Sandboxes)
	a.UpdatePodLevel = false
	if a.KillPod {
		a.Kills, a.Resets = nil, nil
	}
	a.UpdatePod = false
	for _, updates := range [][]goldenRef{a.Updates.CPU, a.Updates.Memory} {
		slices.SortFunc(updates, func(x, y goldenRef) int { return cmp.Compare(x.ID, y.ID) })
	}
	return a
}

func diffActions(want, got *goldenActions) string {
	return gocmp.Diff(want.comparable(), got.comparable(), equateEmpty)
}

var equateEmpty = gocmp.FilterValues(func(x, y any) bool {
	a, aOK := x.([]string)
	b, bOK := y.([]string)
	if aOK && bOK {
		return len(a)+len(b) == 0
	}
	c, cOK := x.([]goldenRef)
	d, dOK := y.([]goldenRef)
	return cOK && dOK && len(c)+len(d) == 0
}, gocmp.Comparer(func(_, _ any) bool { return true }))

// TestPlansAgreeWithTheKubelet makes a plan for each recorded situation, from manifest and snapshot to the JSON
// document. It compares the plan with the decision of a kubelet.
func TestPlansAgreeWithTheKubelet(t *testing.T) {
	rules := differing(t, "testdata/actions.differ.txt")
	counts := map[string]int{}
	g := &goldenCall{dir: t.TempDir()}
	podspectest.EachRow(t, "testdata/actions.train.jsonl.gz", func(line []byte) {
		r := goldenRow{Backoffs: []object{}}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Group == "deleting" {
			return
		}
		counts[judgeRow(t, g, &r, rules)]++
	})
	if counts["agree"] < 4000 {
		t.Errorf("only %d rows agree", counts["agree"])
	}
	t.Logf("rows: %v", counts)
}

func judgeRow(t *testing.T, g *goldenCall, r *goldenRow, rules map[string]string) string {
	t.Helper()
	rule, listed := rules[r.ID]
	code, out, errs := g.run(t, r, "plan")
	var p plan.Plan
	if code == exit.Refused && rule == "refused" {
		return rule
	}
	if err := json.Unmarshal(out, &p); code != exit.OK || err != nil {
		t.Errorf("%s (%s): exit code %d, %v: %s", r.ID, r.Group, code, err, errs)
	}
	diff := r.diff(t, &p)
	switch {
	case diff == "" && listed:
		t.Errorf("%s: agrees with the kubelet and is listed as differing (%s)", r.ID, rule)
	case diff != "" && !listed:
		t.Errorf("%s (%s %v): -kubelet +podctl\n%s", r.ID, r.Group, r.Tags, diff)
	case diff == "":
		return "agree"
	}
	return rule
}

// diff compares a plan with the actions of the kubelet. A kubelet terminates a finished pod, whatever actions it
// computes for it.
func (r *goldenRow) diff(t *testing.T, p *plan.Plan) string {
	t.Helper()
	want := &goldenActions{}
	if err := json.Unmarshal(r.Expect, want); err != nil {
		t.Fatal(err)
	}
	if r.finished() {
		return r.diffTerminated(p)
	}
	if slices.ContainsFunc(p.Holds, func(h plan.Hold) bool { return h.Container != "" }) {
		return "held"
	}
	return diffActions(want, actionsOf(p))
}

// finished reports whether the kubelet saw the end of the pod. It then terminates the pod, whatever other actions it
// computed.
func (r *goldenRow) finished() bool {
	return r.KubeletPhase == v1.PodSucceeded || r.KubeletPhase == v1.PodFailed
}

// diffTerminated checks that nothing starts, and that all running containers are stopped.
func (r *goldenRow) diffTerminated(p *plan.Plan) string {
	want := &goldenActions{}
	for i := range r.CRI.Containers {
		if r.CRI.Containers[i].State == string(model.Running) {
			want.KillTargets.Containers = append(want.KillTargets.Containers, r.CRI.Containers[i].ID)
		}
	}
	got := actionsOf(p)
	stopped := &goldenActions{
		InitStarts: got.InitStarts, Starts: got.Starts, EphemeralStarts: got.EphemeralStarts,
		CreateSandbox: got.CreateSandbox,
	}
	stopped.KillTargets.Containers = got.KillTargets.Containers
	return diffActions(want, stopped)
}
