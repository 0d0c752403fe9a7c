package planfile

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

func inputOf(w *modeltest.World) *plan.Input {
	return &plan.Input{
		Pod:   model.RefOf(w.Desired.Pod),
		Input: podstatus.Input{Desired: w.Desired, Observed: w.Observed, Now: modeltest.Noon()},
	}
}

// lines lists the steps and holds of a plan.
func lines(p *plan.Plan) []string {
	out := []string{}
	for i := range p.Steps {
		out = append(out, p.Steps[i].ID)
	}
	for _, h := range p.Holds {
		out = append(out, "hold "+h.Container)
	}
	return out
}

// savedCopy returns a plan as it is read from its file.
func savedCopy(t *testing.T, in *plan.Input) *plan.Plan {
	t.Helper()
	kept := *in
	kept.Options.KeepBasis = true
	text, err := json.Marshal(Make(&kept))
	if err != nil {
		t.Fatal(err)
	}
	saved := &plan.Plan{}
	if err := json.Unmarshal(text, saved); err != nil {
		t.Fatal(err)
	}
	return saved
}

func TestSavedPlanIsMadeAgain(t *testing.T) {
	in := inputOf(modeltest.New(modeltest.Load(t, modeltest.WebPod)))
	saved := savedCopy(t, in)
	later := *in
	later.Now = modeltest.Noon().Add(time.Hour)
	p, err := MakeAgain(&later, saved)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(p), lines(Make(in)); !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("steps %v, want %v", got, want)
	}
}

func TestStalePlanNamesChanges(t *testing.T) {
	edited := modeltest.Load(t, strings.Replace(modeltest.WebPod, "{name: app, image: i:1}", "{name: app, image: i:2}", 1))
	ended := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	ended.Containers[1].State, ended.Containers[1].ExitCode = model.Exited, 3
	cases := map[string]struct {
		now  *plan.Input
		want string
	}{
		"the manifest":          {inputOf(modeltest.Running(edited)), "manifest: spec.containers[app].image: i:1 -> i:2"},
		"a container":           {inputOf(ended), "exit code 3"},
		"the container is gone": {inputOf(modeltest.New(modeltest.Load(t, modeltest.WebPod))), "container app (app-0-of-s0): gone"},
		"one that stays": {
			inputOf(modeltest.Running(modeltest.Load(t, modeltest.WebPod)).Sandbox("s1", 1, model.SandboxReady)),
			"sandbox s1: new: ready, attempt 1",
		},
	}
	saved := savedCopy(t, inputOf(modeltest.Running(modeltest.Load(t, modeltest.WebPod))))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := MakeAgain(c.now, saved)
			if stale := (*staleError)(nil); !errors.As(err, &stale) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want it to name %q", err, c.want)
			}
		})
	}
}

// TestChangesAreDescribedWithoutHashes checks that changes are described without hashes.
func TestChangesAreDescribedWithoutHashes(t *testing.T) {
	runs := "RUNNING restarts 1 6cab2ae5 v1:5bc1d2aa5bc1d2aa5bc1d2aa5bc1d2aa 9d0e4c77aaaabbbb 7b2c1e0a99"
	for object, c := range map[string]struct{ before, after, want string }{
		"container app (9d0e4c77aaaa)": {
			runs,
			strings.Replace(runs, "RUNNING", "EXITED", 1) + " exit code 137 Error liveness Failure",
			"running -> exited, exit code 137, Error, liveness Failure",
		},
		"container b (9d0e4c77aaaa)": {runs, strings.Replace(runs, "5bc1", "5bc2", 1), "created from another definition"},
		"container c (9d0e4c77aaaa)": {"", runs, "new: running, restarts 1"},
		"container d (9d0e4c77aaaa)": {runs, "", "gone"},
		"container e (9d0e4c77aaaa)": {runs + " log full", runs, "no longer log full"},
		"sandbox 7b2c1e0a99": {
			"READY attempt 0 POD 10.0.0.5 v1:5bc1d2 7b2c1e0a99",
			"NOTREADY attempt 0 POD v1:5bc1d2 7b2c1e0a99",
			"ready, 10.0.0.5 -> not ready",
		},
		"image i:1":       {"absent", "sha256:5bc1d2aa", "no longer absent"},
		"image i:2":       {"sha256:5bc1d2aa", "sha256:5bc1d2ab", "the name refers to another image"},
		"volume v":        {"prepared true sha256:5bc1d2aa", "prepared true sha256:5bc1d2ab", "other content"},
		"cgroup":          {"exists true", "exists false", "there -> missing"},
		"left running":    {"sha256:5bc1d2aa", "sha256:5bc1d2ab", "podctl has run another pass"},
		"back-off of app": {"10s", "20s", "10s -> 20s"},
	} {
		was, is := facts{object: c.before}, facts{object: c.after}
		if c.before == "" {
			was = nil
		}
		if c.after == "" {
			is = nil
		}
		if got := was.changesTo(is); !slices.Equal(got, []string{object + ": " + c.want}) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestSavedHoldIsNotExecuted checks that a hold that ended makes the plan neither stale nor longer.
func TestSavedHoldIsNotExecuted(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	w.Containers[1].State, w.Containers[1].ExitCode, w.Containers[1].FinishedAt = model.Exited, 1, modeltest.Noon().Add(-time.Second)
	w.Containers[2].State, w.Containers[2].FinishedAt = model.Exited, modeltest.Noon().Add(-time.Second)
	w.Memory.Backoffs["app"] = model.Backoff{Duration: 40 * time.Second, LastUpdate: modeltest.Noon().Add(-time.Minute)}
	saved := savedCopy(t, inputOf(w))
	if len(saved.Holds) != 1 {
		t.Fatalf("holds %+v", saved.Holds)
	}
	later := inputOf(w)
	later.Now = modeltest.Noon().Add(time.Hour)
	p, err := MakeAgain(later, saved)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(p); slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "app") }) || len(got) == 0 {
		t.Errorf("steps %v: the held container is started", got)
	}
}

func TestStepsThatWereAddedAreRefused(t *testing.T) {
	in := inputOf(modeltest.Running(modeltest.Load(t, modeltest.WebPod)))
	for name, tamper := range map[string]func(*plan.Plan){
		"another step": func(p *plan.Plan) {
			p.Steps = append(p.Steps, plan.Step{ID: "stop-app", Kind: plan.StopContainer, Container: "app"})
		},
		"another pod": func(p *plan.Plan) { p.Pod.UID = "other" },
	} {
		saved := savedCopy(t, in)
		tamper(saved)
		if _, err := MakeAgain(in, saved); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestSavedPlanHoldsNoSecret(t *testing.T) {
	d := modeltest.Load(t, `apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {key: hunter2}
---
`+strings.Replace(modeltest.WebPod, "{name: app, image: i:1}", "{name: app, image: i:1, envFrom: [{secretRef: {name: s}}]}", 1))
	text, err := json.Marshal(savedCopy(t, inputOf(modeltest.New(d))))
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "aHVudGVyMg") {
		t.Errorf("the saved plan holds the secret: %s", text)
	}
	changed := modeltest.Load(t, strings.Replace(`apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {key: hunter3}
---
`+modeltest.WebPod, "{name: app, image: i:1}", "{name: app, image: i:1, envFrom: [{secretRef: {name: s}}]}", 1))
	_, err = MakeAgain(inputOf(modeltest.New(changed)), savedCopy(t, inputOf(modeltest.New(d))))
	if err == nil || !strings.Contains(err.Error(), "manifest: secrets.s.data.key: (secret changed)") {
		t.Errorf("error %v", err)
	}
}
