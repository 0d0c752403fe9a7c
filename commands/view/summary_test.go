package view

import (
	"testing"

	"github.com/podctl/podctl/runtime/plan"
)

// TestSummaries: a plan and its outcome have the same counts in two tenses.
func TestSummaries(t *testing.T) {
	all := plan.Summary{Start: 1, Stop: 2, Replace: 3, Update: 4, Remove: 5, Keep: 6, Hold: 7}
	record := &plan.Plan{
		Complete: true, Record: []plan.Edit{{TakesEffect: plan.EffectLive}},
		Summary: plan.Summary{Record: 1, Keep: 2},
	}
	steps := []plan.Step{{Kind: plan.StartContainer}}
	for name, c := range map[string]struct{ got, want string }{
		"planned": {
			summaryLine(&plan.Plan{Steps: steps, Summary: all}),
			"Plan: 3 to replace, 1 to start, 2 to stop, 4 to update, 5 to remove, 7 held, 6 unchanged.",
		},
		"done": {
			Outcome(&plan.Plan{Steps: steps, Summary: all}),
			"applied: 3 replaced, 1 started, 2 stopped, 4 updated, 5 removed, 7 held, 6 unchanged",
		},
		"and later": {
			Outcome(&plan.Plan{Steps: steps, Summary: plan.Summary{Start: 1}, Later: []string{"b"}}),
			"applied: 1 started; later b",
		},
		"and held": {Outcome(&plan.Plan{
			Steps:      steps,
			Summary:    plan.Summary{Start: 1, Hold: 1},
			Holds:      []plan.Hold{{Container: "a", Reason: "R", Message: "m"}},
			WaitingFor: []string{"c"},
		}), "applied: 1 started, 1 held; a held (R: m); waits for c"},
		"unchanged": {Outcome(&plan.Plan{Complete: true}), "unchanged"},
		"waits":     {Outcome(&plan.Plan{WaitingFor: []string{"a", "b"}}), "waits for a, b"},
		"held": {
			Outcome(&plan.Plan{Holds: []plan.Hold{{Container: "a", Reason: "R", Message: "m"}}}),
			"held: a held (R: m)",
		},
		"prepared": {
			Outcome(&plan.Plan{Steps: steps, Summary: plan.Summary{Prepare: 2, Rotate: 1, CleanUp: 3}}),
			"applied: 2 prepared, 3 cleaned up, 1 log rotated",
		},
		"recorded":  {Outcome(record), "applied: 1 field recorded, 2 unchanged"},
		"to record": {summaryLine(record), "Plan: 1 field to record, 2 unchanged. Nothing restarts."},
		"held too": {
			Outcome(&plan.Plan{Holds: []plan.Hold{{Container: "a", Reason: "R", Message: "m"}}, Record: record.Record}),
			"held: a held (R: m); 1 field recorded",
		},
		"to adopt": {
			summaryLine(&plan.Plan{Complete: true, Adopts: true, Summary: plan.Summary{Keep: 2}}),
			"No changes to the running containers; apply adopts the pod (2 unchanged).",
		},
		"no steps": {
			summaryLine(&plan.Plan{Complete: true, Summary: plan.Summary{Keep: 2}}),
			"No changes. The pod matches the manifest (2 unchanged).",
		},
		"a source": {
			summaryLine(&plan.Plan{Complete: true, Source: "x", Summary: plan.Summary{Keep: 2}}),
			"No changes to the applied version (2 unchanged). The source file has changed since.",
		},
		"next": {
			NextApply(&plan.Plan{Summary: all}),
			"3 to replace, 1 to start, 2 to stop, 4 to update, 5 to remove, 7 held (see podctl plan)",
		},
		"next none": {NextApply(&plan.Plan{Summary: plan.Summary{Keep: 3}}), "nothing to do"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}
