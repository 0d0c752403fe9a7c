package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// rows returns a row for each object of the plan, and rows for the edits that are only recorded. Every step except a
// check is in one row.
func (v *Plan) rows(p *plan.Plan) []planRow {
	var rows []planRow
	for i := range p.Objects {
		rows = append(rows, objectRow(p, &p.Objects[i]))
	}
	return append(rows, recordRows(p)...)
}

// objectRow describes the action on one object and its reason.
func objectRow(p *plan.Plan, o *plan.Object) planRow {
	row := planRow{name: label(o)}
	steps := p.StepsOf(o)
	row.symbol, row.action = actionText(o, steps)
	switch container := o.Container != ""; {
	case o.Action == plan.Kept:
		return row
	case o.Action == plan.Held:
		hold := &p.Holds[o.Holds[0]]
		row.action, row.comment = holdAction(hold), holdComment(hold)
		return row
	case len(steps) > 0 && steps[0].Kind == plan.AllocateDevices:
		row.comment = steps[0].Detail()
	case container && len(o.Changes) > 0:
		row = row.explained("", o)
	case container, o.Action != plan.Prepared && o.Action != plan.CleanedUp:
		row = row.explained(o.Message, o)
	}
	if hasDetails(o, steps) {
		row.details = append(row.details, stepDetails(steps)...)
	}
	if len(o.Holds) > 0 && row.symbol == symbolStop {
		hold := &p.Holds[o.Holds[0]]
		row.details = append(row.details, planDetail{text: "start " + holdAction(hold), comment: holdComment(hold)})
	}
	return row
}

// actionText returns the symbol and the words for the action on an object.
func actionText(o *plan.Object, steps []*plan.Step) (symbol, text string) {
	switch o.Action {
	case plan.Kept:
		if o.IsSandbox() {
			return symbolKeep, "ready"
		}
		return symbolKeep, o.Message
	case plan.Held:
		return symbolHold, ""
	case plan.Started:
		if o.IsSandbox() {
			return symbolCreate, "create"
		}
		isRestart := func(s *plan.Step) bool { return s.Kind == plan.StartContainer && s.Attempt > 0 }
		if slices.ContainsFunc(steps, isRestart) {
			return symbolCreate, "restart"
		}
		return symbolCreate, "start"
	case plan.Replaced:
		return symbolReplace, "replace"
	case plan.Updated:
		return symbolUpdate, "update in place"
	case plan.Rotated:
		return symbolUpdate, steps[0].Kind.Verb()
	case plan.Stopped:
		if o.Removes {
			return symbolStop, "stop, remove"
		}
		return symbolStop, "stop"
	case plan.Removed:
		return symbolStop, "remove"
	case plan.CleanedUp:
		return symbolStop, steps[0].Kind.Verb()
	case plan.Prepared:
	}
	return symbolCreate, steps[0].Kind.Verb()
}

// hasDetails reports whether the steps of a row add information to it.
func hasDetails(o *plan.Object, steps []*plan.Step) bool {
	switch {
	case o.IsSandbox():
		return o.Action == plan.Replaced || o.Action == plan.Stopped && len(steps) > 2
	case o.Container == "":
		return false
	case len(steps) > 1:
		return true
	}
	switch s := steps[0]; s.Kind { //nolint:exhaustive // the others have details
	case plan.StartContainer:
		return s.Attempt > 0 || s.PostStart != ""
	case plan.UpdateContainer, plan.RemoveContainer:
		return false
	}
	return true
}

// stepDetails returns lines for the steps of a row, in the order in which they start.
func stepDetails(own []*plan.Step) []planDetail {
	width := 0
	for _, s := range own {
		width = max(width, len(s.Kind.Verb()))
	}
	var details []planDetail
	for _, s := range own {
		d := planDetail{text: padded(s.Kind.Verb(), width) + " " + s.Detail()}
		switch s.Kind { //nolint:exhaustive // the row has the reason
		case plan.PullImage:
			d.text, d.comment = padded(s.Kind.Verb(), width)+" "+s.Image, s.Message
		case plan.UpdateContainer:
			d.text += model.ShortID(s.ContainerID)
		}
		details = append(details, d)
	}
	return details
}

func holdAction(h *plan.Hold) string {
	if h.Until != nil {
		return "held until " + h.Until.Local().Format(time.TimeOnly)
	}
	return "held"
}

func holdComment(h *plan.Hold) string {
	if h.Delay != nil {
		return string(h.Reason) + " " + h.Delay.String()
	}
	return fmt.Sprintf("%s: %s", h.Reason, h.Message)
}

// label returns the name of an object in a plan. Init containers and sidecars have their type in front.
func label(o *plan.Object) string {
	if o.ContainerType == "" || o.ContainerType == podspec.Regular {
		return o.Name
	}
	return string(o.ContainerType) + " " + o.Name
}
