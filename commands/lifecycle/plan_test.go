package lifecycle

import (
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/plan"
)

func TestPlanCode(t *testing.T) {
	pending := &plan.Plan{Steps: []plan.Step{{}}}
	held := &plan.Plan{Holds: []plan.Hold{{}}}
	both := &plan.Plan{Steps: []plan.Step{{}}, Holds: []plan.Hold{{}}}
	complete := &plan.Plan{Complete: true}
	recorded := &plan.Plan{Complete: true, Record: []plan.Edit{{}}}
	for name, c := range map[string]struct {
		plans []*plan.Plan
		want  int
	}{
		"none":                      {nil, exit.OK},
		"complete":                  {[]*plan.Plan{complete}, exit.OK},
		"steps":                     {[]*plan.Plan{pending}, exit.Pending},
		"steps and holds":           {[]*plan.Plan{both}, exit.Pending},
		"only the record":           {[]*plan.Plan{complete, recorded}, exit.Pending},
		"an adopted pod":            {[]*plan.Plan{{Complete: true, Adopts: true}}, exit.Pending},
		"a source that changed":     {[]*plan.Plan{{Complete: true, Source: "x"}}, exit.Pending},
		"held, and the record":      {[]*plan.Plan{{Holds: held.Holds, Record: recorded.Record}}, exit.Pending},
		"held":                      {[]*plan.Plan{complete, held}, exit.NotYet},
		"one pending, one held":     {[]*plan.Plan{pending, held}, exit.NotYet},
		"one held, one pending":     {[]*plan.Plan{held, complete, pending}, exit.NotYet},
		"one pending, one complete": {[]*plan.Plan{pending, complete}, exit.Pending},
	} {
		if got := (&planOptions{}).code(c.plans); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
