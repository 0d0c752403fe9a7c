package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/observe"
)

// podPrinter writes pods in an output format, and remembers what it wrote, so that a watch
// shows what is new.
type podPrinter struct {
	io         *terminal.IO
	output     string
	sortBy     string
	containers bool
	noHeaders  bool
	view.LabelColumns
	// template is the user's own, columns are those of the user's own table.
	template template
	columns  []column
	// namespaces adds the pods' namespaces, single says that one pod is named.
	namespaces bool
	single     bool
	shown      map[string]string
}

func (p *podPrinter) isTable() bool {
	return terminal.IsText(p.output) || p.output == "wide" || p.columns != nil
}

// prepare reads the template of an output format, before anything is looked at.
func (p *podPrinter) prepare(ctx context.Context, from *terminal.IO) error {
	p.io = from
	format, text, isFile := flags.SplitTemplate(p.output)
	if (p.ShowLabels || len(p.Labels) > 0) && (format != "" || !p.isTable()) {
		return exit.Usagef("--show-labels and --label-columns need a table: -o text or wide")
	}
	if isFile {
		content, err := from.ReadFile(ctx, text)
		if err != nil {
			return fmt.Errorf("reading the template: %w", err)
		}
		text = string(content)
	}
	var err error
	switch format {
	case flags.JSONPath:
		p.template, err = parsePath(text)
	case flags.CustomColumns:
		if isFile {
			text, err = columnsOfFile(text)
		}
		if err == nil {
			p.columns, err = parseColumns(text)
		}
	}
	if err != nil {
		return exit.Usagef("-o %s: %v", format, err)
	}
	return nil
}

// print writes all pods.
func (p *podPrinter) print(pods []*v1.Pod) error {
	switch {
	case terminal.IsDocument(p.output):
		p.remember(pods)
		if p.single && len(pods) == 1 {
			return terminal.WriteDocument(p.io.Out, p.output, pods[0])
		}
		return terminal.WriteDocument(p.io.Out, p.output, view.PodList(pods))
	case p.output == "name":
		p.remember(pods)
		p.printNames(pods)
		return nil
	case p.template != nil:
		p.remember(pods)
		return p.printTemplate(pods)
	}
	header, rows, err := p.table(pods)
	if err != nil {
		return err
	}
	p.rememberRows(rows)
	if p.noHeaders {
		header = nil
	}
	return terminal.Table(p.io.Out, header, cellsOf(rows))
}

// printChanged writes what is not as it was written last.
func (p *podPrinter) printChanged(pods []*v1.Pod) error {
	if p.isTable() {
		header, rows, err := p.table(pods)
		if err != nil {
			return err
		}
		return printRows(p.io, header, cellsOf(rows), p.rememberRows(rows))
	}
	changed := p.remember(pods)
	switch {
	case len(changed) == 0:
		return nil
	case p.output == "name":
		p.printNames(changed)
		return nil
	case p.template != nil:
		return p.printTemplate(changed)
	}
	for _, pod := range changed {
		if err := terminal.WriteDocument(p.io.Out, p.output, pod); err != nil {
			return err
		}
	}
	return nil
}

// printRows writes those rows of a table that changed, as wide as the whole table.
func printRows(io *terminal.IO, header []string, rows [][]string, changed []bool) error {
	var whole strings.Builder
	if err := terminal.Table(&whole, header, rows); err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(whole.String()))
	for i := range rows {
		if changed[i] {
			fmt.Fprint(io.Out, lines[i+1]) //nolint:errcheck // a closed pipe ends the process
		}
	}
	return nil
}

func cellsOf(rows []view.Row) [][]string {
	cells := make([][]string, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, row.Cells)
	}
	return cells
}

func (p *podPrinter) printNames(pods []*v1.Pod) {
	for _, pod := range pods {
		p.io.Print("pod/%s", pod.Name)
	}
}

// remember returns the pods that are not as they were before.
func (p *podPrinter) remember(pods []*v1.Pod) []*v1.Pod {
	now := map[string]string{}
	changed := slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool {
		text := pod.Status.String()
		now[string(pod.UID)] = text
		return p.shown[string(pod.UID)] == text
	})
	p.shown = now
	return changed
}

// rememberRows reports which rows are not as they were before. Times that only went on are no
// change.
func (p *podPrinter) rememberRows(rows []view.Row) []bool {
	now, changed := map[string]string{}, make([]bool, len(rows))
	for i, row := range rows {
		now[row.State] = row.State
		changed[i] = p.shown[row.State] == ""
	}
	p.shown = now
	return changed
}

func (p *podPrinter) table(pods []*v1.Pod) (header []string, rows []view.Row, err error) {
	if p.columns != nil {
		return customTable(p.columns, pods)
	}
	v := &view.Pods{
		Now: p.io.Now(), Wide: p.output == "wide", Namespaces: p.namespaces, LabelColumns: p.LabelColumns,
		Owners: slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return pod.Annotations[observe.AnnotationOwner] != "" }),
	}
	if p.containers {
		header, rows = v.ContainerTable(pods)
	} else {
		header, rows = v.Table(pods)
	}
	return header, rows, nil
}

// printTemplate writes what a template of the user's makes, as kubectl does: of the list, or of
// the pod that is named.
func (p *podPrinter) printTemplate(pods []*v1.Pod) error {
	value := view.PodList(pods)
	if p.single && len(pods) == 1 {
		value = pods[0]
	}
	return p.executeTemplate(value)
}

// executeTemplate writes what a template of the user's makes of a document.
func (p *podPrinter) executeTemplate(document any) error {
	data, err := asJSON(document)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err = p.template.Execute(&text, data); err != nil {
		return err
	}
	_, err = io.WriteString(p.io.Out, terminal.Printable(text.String()))
	return err
}

// sortByField orders objects by the field that --sort-by names. A field that none of them has is
// taken for a mistake, as in kubectl.
func sortByField[T comparable](field, kind string, objects []T, document func(T) any) error {
	if field == "" {
		return nil
	}
	path, err := parsePath(field)
	if err != nil {
		return exit.Usagef("--sort-by: %v", err)
	}
	keys, known := map[T]any{}, false
	for _, object := range objects {
		data, err := asJSON(document(object))
		if err != nil {
			return err
		}
		found, err := path.FindResults(data)
		if err != nil {
			return exit.Usagef("--sort-by: %v", err)
		}
		keys[object] = firstValue(found)
		known = known || keys[object] != nil
	}
	if !known && len(objects) > 0 {
		return exit.Usagef("--sort-by: no %s has a field %s", kind, field)
	}
	slices.SortStableFunc(objects, func(a, b T) int { return compareValues(keys[a], keys[b]) })
	return nil
}

func firstValue(found [][]reflect.Value) any {
	if len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	return found[0][0].Interface()
}

// compareValues orders numbers by size and all else as text; times in RFC 3339 are
// in order as text. What has no value comes first.
func compareValues(a, b any) int {
	x, isNumber := number(a)
	if y, both := number(b); isNumber && both {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(textOf(a), textOf(b))
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case int64:
		return float64(value), true
	}
	return 0, false
}

func textOf(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
