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

// rows puts the plan's steps together by the object they act on, in the order in which they
// run: what is made ready, the sandbox, its containers, and what is left of a deleted pod.
// Where the sandbox ends, it does so after its containers. Every step but a check is in one
// row.
func (v *Plan) rows(p *plan.Plan) []planRow {
	rows := prepareRows(p)
	var containers []planRow
	for _, name := range containerNames(p) {
		containers = append(containers, containerRow(p, name))
	}
	sandbox, older := sandboxRows(p)
	if pod, first := podRow(p); first {
		containers = append(pod, containers...)
	} else {
		containers = append(containers, pod...)
	}
	if find(p, plan.StopSandbox, "") != nil && find(p, plan.RunSandbox, "") == nil {
		rows = append(append(rows, containers...), sandbox...)
	} else {
		rows = append(append(rows, sandbox...), containers...)
	}
	rows = append(append(rows, otherRows(p)...), older...)
	return append(rows, recordRows(p)...)
}

// podRow is the row of the pod's own resources, and whether they change before those of its
// containers.
func podRow(p *plan.Plan) (rows []planRow, first bool) {
	for i := range p.Steps {
		switch s := &p.Steps[i]; s.Kind { //nolint:exhaustive // the others are of other rows
		case plan.UpdateContainer:
			return append(rows, podUpdates(p.Steps[i:])...), len(rows) > 0
		case plan.UpdatePod:
			rows = podUpdates(p.Steps[i : i+1])
		}
	}
	return rows, false
}

func podUpdates(steps []plan.Step) []planRow {
	var rows []planRow
	for i := range steps {
		if s := &steps[i]; s.Kind == plan.UpdatePod {
			rows = append(rows, planRow{symbol: symbolUpdate, name: s.Object(), action: "update in place", comment: s.Message})
		}
	}
	return rows
}

// prepareRows are what has to be ready before containers start.
func prepareRows(p *plan.Plan) []planRow {
	var rows []planRow
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Kind { //nolint:exhaustive // the others are of other rows
		case plan.CreateCgroup, plan.PrepareVolume:
			rows = append(rows, planRow{symbol: symbolCreate, name: s.Object(), action: s.Kind.Verb()})
		case plan.UpdateVolume:
			rows = append(rows, planRow{symbol: symbolUpdate, name: s.Object(), action: "update in place", comment: s.Message})
		}
	}
	return rows
}

// sandboxRows are the row of the sandbox, and those of older ones that are removed.
func sandboxRows(p *plan.Plan) (sandbox, older []planRow) {
	own, others := sandboxSteps(p)
	for _, s := range others {
		older = append(older, planRow{symbol: symbolStop, name: "sandbox " + model.ShortID(s.SandboxID), action: "remove", comment: s.Message})
	}
	create, stop := find(p, plan.RunSandbox, ""), find(p, plan.StopSandbox, "")
	row := planRow{name: "sandbox"}
	switch {
	case create != nil && stop != nil:
		row.symbol, row.action = symbolReplace, "replace"
		row = row.explained(create.Message, create)
		row.details = append(row.details, stepDetails(own)...)
	case create != nil:
		row.symbol, row.action, row.comment = symbolCreate, "create", create.Message
	case stop != nil:
		row.symbol, row.action, row.comment = symbolStop, actions(own), stop.Message
		if len(own) > 2 {
			row.details = stepDetails(own)
		}
	default:
		i := slices.IndexFunc(p.Keeps, func(k plan.Keep) bool { return k.Container == "" })
		if i < 0 {
			return nil, older
		}
		row.symbol, row.action = symbolKeep, "ready"
	}
	return []planRow{row}, older
}

// sandboxSteps are the steps of the pod's sandbox, and those that remove older ones while
// nothing happens to it.
func sandboxSteps(p *plan.Plan) (own, others []*plan.Step) {
	changes := find(p, plan.RunSandbox, "") != nil || find(p, plan.StopSandbox, "") != nil
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Kind { //nolint:exhaustive // the others are of other rows
		case plan.RunSandbox, plan.StopSandbox:
			own = append(own, s)
		case plan.RemoveSandbox:
			if changes {
				own = append(own, s)
			} else {
				others = append(others, s)
			}
		}
	}
	return own, others
}

// actions are the words for some steps: stop, remove.
func actions(steps []*plan.Step) string {
	var verbs []string
	for _, s := range steps {
		verbs = append(verbs, s.Kind.Verb())
	}
	return strings.Join(slices.Compact(verbs), ", ")
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
		if s := &p.Steps[i]; isContainers(s) {
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

// isContainers reports whether a step is in the row of a container.
func isContainers(s *plan.Step) bool {
	switch s.Kind {
	case plan.PullImage, plan.StartContainer, plan.StopContainer, plan.RemoveContainer, plan.UpdateContainer:
		return true
	case plan.CreateCgroup, plan.RemoveCgroup, plan.PrepareVolume, plan.UpdateVolume, plan.RemoveVolume, plan.CheckContainer,
		plan.RunSandbox, plan.StopSandbox, plan.RemoveSandbox, plan.UpdatePod, plan.ArchiveLogs, plan.RotateLog:
	}
	return false
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
func containerRow(p *plan.Plan, name string) planRow {
	start, stop := find(p, plan.StartContainer, name), find(p, plan.StopContainer, name)
	update := find(p, plan.UpdateContainer, name)
	own := containerSteps(p, name)
	row := planRow{name: label(p, name)}
	switch {
	case len(own) == 0:
		return quietRow(p, name, row)
	case start != nil && stop != nil:
		row.symbol, row.action = symbolReplace, "replace"
		row = row.explained(messageOf(start), start)
	case start != nil:
		row.symbol, row.action = symbolCreate, "start"
		if start.Attempt > 0 {
			row.action = "restart"
		}
		row = row.explained(messageOf(start), start)
	case stop != nil:
		row.symbol, row.action, row.comment = symbolStop, "stop", stop.Message
		if find(p, plan.RemoveContainer, name) != nil {
			row.action = "stop, remove"
		}
	case update != nil:
		row.symbol, row.action = symbolUpdate, "update in place"
		row = row.explained("", update)
	case find(p, plan.RemoveContainer, name) != nil:
		row.symbol, row.action, row.comment = symbolStop, "remove", own[0].Message
	default:
		row.symbol, row.action, row.comment = symbolCreate, "pull", own[0].Message
	}
	if !saysAll(own) {
		row.details = append(row.details, stepDetails(own)...)
	}
	if hold := findHold(p, name); hold != nil && row.symbol == symbolStop {
		row.details = append(row.details, planDetail{text: "start " + holdAction(hold), comment: holdComment(hold)})
	}
	return row
}

// messageOf is why a container starts, unless that is what changed.
func messageOf(start *plan.Step) string {
	if len(start.Changes) > 0 {
		return ""
	}
	return start.Message
}

// containerSteps are the steps of a container's row.
func containerSteps(p *plan.Plan, name string) []*plan.Step {
	var own []*plan.Step
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Container == name && isContainers(s) {
			own = append(own, s)
		}
	}
	return own
}

// saysAll reports whether a row needs no details: it has one step, of which there is no more
// to say.
func saysAll(own []*plan.Step) bool {
	if len(own) != 1 {
		return false
	}
	switch s := own[0]; s.Kind { //nolint:exhaustive // the others have details
	case plan.StartContainer:
		return s.Attempt == 0 && s.PostStart == ""
	case plan.UpdateContainer, plan.RemoveContainer:
		return true
	}
	return false
}

// stepDetails are lines for the steps of a row, in the order in which they begin.
func stepDetails(own []*plan.Step) []planDetail {
	width := 0
	for _, s := range own {
		width = max(width, len(s.Kind.Verb()))
	}
	var details []planDetail
	for _, s := range own {
		d := planDetail{text: padded(s.Kind.Verb(), width) + " " + s.Detail()}
		switch s.Kind { //nolint:exhaustive // the row says why
		case plan.PullImage:
			d.text, d.comment = padded(s.Kind.Verb(), width)+" "+s.Image, s.Message
		case plan.UpdateContainer:
			d.text += model.ShortID(s.ContainerID)
		}
		details = append(details, d)
	}
	return details
}

func quietRow(p *plan.Plan, name string, row planRow) planRow {
	if hold := findHold(p, name); hold != nil {
		row.symbol, row.action, row.comment = symbolHold, holdAction(hold), holdComment(hold)
		return row
	}
	if i := slices.IndexFunc(p.Keeps, func(k plan.Keep) bool { return k.Container == name }); i >= 0 {
		row.symbol, row.action = symbolKeep, p.Keeps[i].Message
	}
	return row
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

// otherRows are the steps that act on logs and on what is left of a pod; and what holds the
// pod as a whole.
func otherRows(p *plan.Plan) []planRow {
	var rows []planRow
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Kind { //nolint:exhaustive // the others are of other rows
		case plan.RotateLog:
			rows = append(rows, planRow{symbol: symbolUpdate, name: s.Object(), action: s.Kind.Verb(), comment: s.Message})
		case plan.RemoveVolume, plan.RemoveCgroup, plan.ArchiveLogs:
			rows = append(rows, planRow{symbol: symbolStop, name: s.Object(), action: s.Kind.Verb()})
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
