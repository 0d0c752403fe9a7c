package commands

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/plan"
)

// The symbols of a plan.
const (
	symbolCreate  = "+"
	symbolStop    = "-"
	symbolReplace = "-/+"
	symbolUpdate  = "~"
	symbolHold    = "…"
	symbolKeep    = "="
)

// planView writes plans for people.
type planView struct {
	w     io.Writer
	paint painter
	now   time.Time
	// unchanged shows what stays also in a plan that changes nothing.
	unchanged bool
}

// planRow is one object of a plan: its symbol, what happens to it and why, and
// the steps behind it.
type planRow struct {
	symbol, name, action, comment string
	details                       []planDetail
}

type planDetail struct{ text, comment string }

// write prints one plan.
func (v *planView) write(p *plan.Plan) error {
	var b strings.Builder
	b.WriteString(v.header(p) + "\n")
	rows := v.rows(p)
	if len(p.Steps) == 0 && len(p.Holds) == 0 && !v.unchanged {
		rows = nil
	}
	if len(rows) > 0 {
		b.WriteString("\n")
		v.writeRows(&b, rows)
	}
	v.writeLines(&b, p)
	b.WriteString("\n" + v.paint.bold(summaryLine(p)) + "\n")
	return writeTrimmed(v.w, b.String())
}

func (v *planView) header(p *plan.Plan) string {
	parts := []string{"Pod " + p.Pod.String(), strings.TrimSpace(p.Runtime.Name + " " + strings.TrimPrefix(p.Runtime.Version, "v"))}
	if p.SandboxID != "" && !p.CreateSandbox {
		parts = append(parts, "sandbox "+short(p.SandboxID)+sandboxIPs(p))
	}
	return v.paint.bold(printable(strings.Join(parts, " · ")))
}

// sandboxIPs are the addresses that the plan's kept sandbox has.
func sandboxIPs(p *plan.Plan) string {
	for i := range p.Keeps {
		if k := &p.Keeps[i]; k.Container == "" && k.Message != "" {
			return ", " + k.Message
		}
	}
	return ""
}

func short(id string) string { return id[:min(len(id), 8)] }

func (v *planView) writeRows(b *strings.Builder, rows []planRow) {
	nameWidth, actionWidth := 8, 8
	for _, r := range rows {
		nameWidth = max(nameWidth, len([]rune(r.name)))
		actionWidth = max(actionWidth, len([]rune(r.action)))
	}
	for _, r := range rows {
		r = r.clean()
		line := fmt.Sprintf("%3s %s  %s", r.symbol, padded(r.name, nameWidth), padded(r.action, actionWidth))
		b.WriteString(v.paint.symbol(r.symbol, strings.TrimRight(line, " ")))
		if r.comment != "" {
			b.WriteString(strings.Repeat(" ", max(len([]rune(line))-len([]rune(strings.TrimRight(line, " "))), 0)))
			b.WriteString(v.paint.dim("  # " + r.comment))
		}
		b.WriteString("\n")
		for _, d := range r.details {
			b.WriteString("      " + d.text)
			if d.comment != "" {
				b.WriteString(v.paint.dim("  # " + d.comment))
			}
			b.WriteString("\n")
		}
	}
}

// clean makes what comes from manifests and runtimes safe to print.
func (r planRow) clean() planRow {
	r.name, r.action, r.comment = printable(r.name), printable(r.action), printable(r.comment)
	details := make([]planDetail, 0, len(r.details))
	for _, d := range r.details {
		details = append(details, planDetail{text: printable(d.text), comment: printable(d.comment)})
	}
	r.details = details
	return r
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(width-len([]rune(text)), 0))
}

// rows puts the plan's steps together by the object they act on, in the order
// sandbox, containers of the manifest, what has left it, volumes.
func (v *planView) rows(p *plan.Plan) []planRow {
	var rows []planRow
	rows = append(rows, v.sandboxRows(p)...)
	for _, name := range containerNames(p) {
		rows = append(rows, v.containerRow(p, name))
	}
	return append(rows, v.otherRows(p)...)
}

func (v *planView) sandboxRows(p *plan.Plan) []planRow {
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
		return []planRow{{symbol: symbolStop, name: "sandbox " + short(old.SandboxID), action: "remove", comment: old.Message}}
	}
	return nil
}

func changesText(s *plan.Step) string {
	if len(s.Changes) == 0 {
		return ""
	}
	return ": " + changeList(s.Changes)
}

// changeList writes the fields that changed, a few of them in full.
func changeList(changes []plan.Change) string {
	const shown = 3
	var parts []string
	for _, c := range changes[:min(len(changes), shown)] {
		parts = append(parts, c.String())
	}
	if more := len(changes) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("(and %d more)", more))
	}
	return strings.Join(parts, ", ")
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
func (v *planView) containerRow(p *plan.Plan, name string) planRow {
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
		row.symbol, row.action, row.comment = symbolUpdate, "update in place", changeList(update.Changes)
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

func (v *planView) quietRow(p *plan.Plan, name string, row *planRow) {
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
		return changeList(s.Changes)
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
	if h.Reason == plan.CrashLoopBackOff {
		return string(h.Reason) + " " + strings.TrimPrefix(h.Message, "back-off ")
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
func (v *planView) otherRows(p *plan.Plan) []planRow {
	var rows []planRow
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Kind {
		case plan.PrepareVolume, plan.CreateCgroup:
			rows = append(rows, planRow{symbol: symbolCreate, name: s.Object(), action: s.Kind.Verb()})
		case plan.UpdateVolume, plan.UpdatePod:
			rows = append(rows, planRow{symbol: symbolUpdate, name: s.Object(), action: "update in place", comment: s.Message})
		case plan.RemoveVolume, plan.RemoveCgroup, plan.ArchiveLogs:
			rows = append(rows, planRow{symbol: symbolStop, name: s.Object(), action: s.Kind.Verb()})
		case plan.PullImage, plan.CheckContainer, plan.RunSandbox, plan.StopSandbox, plan.RemoveSandbox, plan.StartContainer,
			plan.StopContainer, plan.RemoveContainer, plan.UpdateContainer, plan.RotateLog:
		}
	}
	for i := range p.Holds {
		if h := &p.Holds[i]; h.Container == "" {
			rows = append(rows, planRow{symbol: symbolHold, name: "pod", action: holdAction(h), comment: holdComment(h)})
		}
	}
	return rows
}

func (v *planView) writeLines(b *strings.Builder, p *plan.Plan) {
	var lines []string
	for _, text := range p.Later {
		lines = append(lines, v.paint.dim("later: "+printable(text)))
	}
	for _, text := range p.WaitingFor {
		lines = append(lines, "waiting for "+printable(text))
	}
	for _, text := range p.Drift {
		lines = append(lines, "drift: "+printable(text))
	}
	for _, text := range p.Notes {
		lines = append(lines, "note: "+printable(text))
	}
	if len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
}

// summaryLine counts what the plan does.
func summaryLine(p *plan.Plan) string {
	if len(p.Steps) == 0 && len(p.Holds) == 0 {
		if p.Complete {
			return fmt.Sprintf("No changes. The pod is as the manifest says (%d unchanged).", p.Summary.Keep)
		}
		return "Nothing to do now."
	}
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(p.Summary.Replace, "to replace")
	add(p.Summary.Start, "to start")
	add(p.Summary.Stop, "to stop")
	add(p.Summary.Update, "to update")
	add(p.Summary.Remove, "to remove")
	add(p.Summary.Hold, "held")
	add(p.Summary.Keep, "unchanged")
	return "Plan: " + strings.Join(parts, ", ") + "."
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
