package lifecycle

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/plan/planfile"
	"github.com/podctl/podctl/runtime/podstatus"
)

// FuzzSavedPlan checks that any input as a saved plan is either refused, or results only in steps that podctl computes
// itself.
func FuzzSavedPlan(f *testing.F) {
	m, err := load.Load(f.Context(), input.Reader{}, "../../docs/examples/hello.yaml")
	if err != nil || m.Err() != nil {
		f.Fatal(err, m.Err())
	}
	d := m.Pods[0]
	in := &plan.Input{
		Pod:   model.RefOf(d.Pod),
		Input: podstatus.Input{Desired: d, Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)},
	}
	made := planfile.Make(in)
	kept := *in
	kept.Options.KeepBasis = true
	for _, doc := range []any{
		PlanDocument([]*plan.Plan{planfile.Make(&kept)}), PlanDocument([]*plan.Plan{planfile.Make(&kept), made}),
	} {
		text, err := json.Marshal(doc)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"apiVersion":"podctl.io/v1alpha1","kind":"PlanList","items":[null]}`))
	f.Add([]byte(`{"apiVersion":"podctl.io/v1alpha1","kind":"Plan",` +
		`"pod":{"namespace":"default","name":"hello","uid":"` + string(d.Pod.UID) + `"},` +
		`"basis":{"desired":{"objects":{"secrets":{"a":null}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		saved, err := parseSaved(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error with two lines: %q", err)
			}
			return
		}
		one, err := saved.of(d)
		if err != nil {
			return
		}
		p, err := planfile.MakeAgain(in, one)
		if err != nil {
			return
		}
		got, gotErr := json.Marshal(p.Steps)
		want, wantErr := json.Marshal(made.Steps)
		if string(got) != string(want) || gotErr != nil || wantErr != nil {
			t.Errorf("a saved plan has changed the steps:\n%s\n%s", got, want)
		}
	})
}
