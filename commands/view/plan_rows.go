package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// rows puts the plan's steps together by the object they act on, in the order
// sandbox, containers of the manifest, what has left it, volumes.
func (v *Plan) rows(p *plan.Plan) []planRow {
	var rows []planRow
	rows = append(rows, v.sandboxRows(p)...)
	for _, name := range containerNames(p) {
		rows = append(rows, v.containerRow(p, name))
	}
	return append(rows, v.otherRows(p)...)
}

func (v *Plan) sandboxRows(p *plan.Plan) []planRow {
	create := find(p, plan.RunSandbox, "")
	stop := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.StopSandbox })
	switch {
	case create != nil && stop >= 0:
		return []planRow{{symbol: symbolReplace, name: "sandbox", action: "replace", comment: create.Message + changesText(create)}}
	case create != nil:
		return []planRow{{symbol: symbolCreate, name: "sandbox", action: "create", comment: create.Message}}
	case stop >= 0:
		action := "stop"
		if find(p, plan.RemoveSandbox, "") != nil {
			action = "stop, remove"
		}
		return []planRow{{symbol: symbolStop, name: "sandbox", action: action, comment: p.Steps[stop].Message}}
	}
	if old := find(p, plan.RemoveSandbox, ""); old != nil {
		return []planRow{{symbol: symbolStop, name: "sandbox " + model.ShortID(old.SandboxID), action: "remove", comment: old.Message}}
	}
	return nil
}

func changesText(s *plan.Step) string {
	if len(s.Changes) == 0 {
		return ""
	}
	return ": " + changeList(s)
}

// changeList writes the fields that changed, a few of them in full.
func changeList(s *plan.Step) string {
	const shown = 3
	var parts []string
	for _, c := range s.Changes[:min(len(s.Changes), shown)] {
		parts = append(parts, c.String())
	}
	text := strings.Join(parts, ", ")
	if more := len(s.Changes) - shown; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	if s.Unchanged > 0 {
		text += fmt.Sprintf(" (%d unchanged)", s.Unchanged)
	}
	return text
}

// containerNames lists the containers a plan speaks of, init containers first.
func containerNames(p *plan.Plan) []string {
	type entry struct {
		name string
		rank int
	}
	var entries []entry
	add := func(name string, t podspec.ContainerType) {
		known := slices.ContainsFunc(entries, func(e entry) bool { return e.name == name })
		if name != "" && !known {
			entries = append(entries, entry{name, rankOf(t)})
		}
	}
	for i := range p.Keeps {
		add(p.Keeps[i].Container, p.Keeps[i].ContainerType)
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind != plan.CheckContainer && s.Kind != plan.PullImage {
			add(s.Container, s.ContainerType)
		}
	}
	for i := range p.Holds {
		add(p.Holds[i].Container, podspec.Regular)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.rank, b.rank) })
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.name)
	}
	return names
}

func rankOf(t podspec.ContainerType) int {
	switch t {
	case podspec.Init, podspec.Sidecar:
		return 0
	case podspec.Ephemeral:
		return 2
	case podspec.Regular:
	}
	return 1
}

// containerRow says what happens to one container.
func (v *Plan) containerRow(p *plan.Plan, name string) planRow {
	start, stop := find(p, plan.StartContainer, name), find(p, plan.StopContainer, name)
	remove, update := find(p, plan.RemoveContainer, name), find(p, plan.UpdateContainer, name)
	row := planRow{name: label(p, name)}
	switch {
	case start != nil && stop != nil:
		row.symbol, row.action, row.comment = symbolReplace, "replace", reasonText(start)
		row.details = replaceDetails(p, name, start, stop)
	case start != nil:
		row.symbol, row.action, row.comment = symbolCreate, "start", reasonText(start)
		row.details = pullDetails(p, name)
		if start.Attempt > 0 {
			row.action = "restart"
			row.details = append(row.details, planDetail{text: "start " + start.Detail()})
		}
	case stop != nil && remove != nil:
		row.symbol, row.action, row.comment = symbolStop, "stop, remove", stop.Message
	case stop != nil:
		row.symbol, row.action, row.comment = symbolStop, "stop", stop.Message
		row.details = []planDetail{{text: "stop  " + stop.Detail()}}
	case update != nil:
		row.symbol, row.action, row.comment = symbolUpdate, "update in place", changeList(update)
	case remove != nil:
		row.symbol, row.action, row.comment = symbolStop, "remove", remove.Message
	default:
		v.quietRow(p, name, &row)
	}
	if hold := findHold(p, name); hold != nil && row.symbol == symbolStop {
		row.details = append(row.details, planDetail{text: "start " + holdAction(hold), comment: holdComment(hold)})
	}
	return row
}

func (v *Plan) quietRow(p *plan.Plan, name string, row *planRow) {
	if hold := findHold(p, name); hold != nil {
		row.symbol, row.action, row.comment = symbolHold, holdAction(hold), holdComment(hold)
		return
	}
	i := slices.IndexFunc(p.Keeps, func(k plan.Keep) bool { return k.Container == name })
	if i >= 0 {
		row.symbol, row.action = symbolKeep, p.Keeps[i].Message
	}
}

func reasonText(s *plan.Step) string {
	if len(s.Changes) > 0 {
		return changeList(s)
	}
	return s.Message
}

func replaceDetails(p *plan.Plan, name string, start, stop *plan.Step) []planDetail {
	details := pullDetails(p, name)
	return append(details, planDetail{text: "stop  " + stop.Detail()}, planDetail{text: "start " + start.Detail()})
}

func pullDetails(p *plan.Plan, name string) []planDetail {
	if pull := find(p, plan.PullImage, name); pull != nil {
		return []planDetail{{text: "pull  " + pull.Image, comment: pull.Message}}
	}
	return nil
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
	return string(h.Reason) + ": " + h.Message
}

// label names a container as a plan does: init containers and sidecars with
// their type.
func label(p *plan.Plan, name string) string {
	var t podspec.ContainerType
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Container == name && s.ContainerType != "" {
			t = s.ContainerType
		}
	}
	for i := range p.Keeps {
		if k := &p.Keeps[i]; k.Container == name {
			t = k.ContainerType
		}
	}
	if t == "" || t == podspec.Regular {
		return name
	}
	return string(t) + " " + name
}

// otherRows are the steps that act on volumes, the cgroup and logs.
func (v *Plan) otherRows(p *plan.Plan) []planRow {
	var rows []planRow
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Kind {
		case plan.PrepareVolume, plan.CreateCgroup:
			rows = append(rows, planRow{symbol: symbolCreate, name: s.Object(), action: s.Kind.Verb()})
		case plan.UpdateVolume, plan.UpdatePod:
			rows = append(rows, planRow{symbol: symbolUpdate, name: s.Object(), action: "update in place", comment: s.Message})
		case plan.RotateLog:
			rows = append(rows, planRow{symbol: symbolUpdate, name: s.Object(), action: s.Kind.Verb(), comment: s.Message})
		case plan.RemoveVolume, plan.RemoveCgroup, plan.ArchiveLogs:
			rows = append(rows, planRow{symbol: symbolStop, name: s.Object(), action: s.Kind.Verb()})
		case plan.PullImage, plan.CheckContainer, plan.RunSandbox, plan.StopSandbox, plan.RemoveSandbox, plan.StartContainer,
			plan.StopContainer, plan.RemoveContainer, plan.UpdateContainer:
		}
	}
	for i := range p.Holds {
		if h := &p.Holds[i]; h.Container == "" {
			rows = append(rows, planRow{symbol: symbolHold, name: "pod", action: holdAction(h), comment: holdComment(h)})
		}
	}
	return rows
}

func find(p *plan.Plan, kind plan.Kind, container string) *plan.Step {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == kind && (s.Container == container || container == "") {
			return s
		}
	}
	return nil
}

func findHold(p *plan.Plan, container string) *plan.Hold {
	for i := range p.Holds {
		if p.Holds[i].Container == container {
			return &p.Holds[i]
		}
	}
	return nil
}
