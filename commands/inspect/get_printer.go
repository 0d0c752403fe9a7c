package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
)

// listing has the objects of one kind that get found.
type listing struct {
	items []listed
	// single is set if the command line names one object. If it was found, it is printed as an object instead of a
	// list.
	single bool
	list   func(documents []any) any
	table  func() (header []string, rows []view.Row, err error)
}

// listed is one item of a listing: its kind and name, its document, and a state that differs after each change.
type listed struct {
	name     string
	document any
	state    string
}

func (l *listing) documents() []any {
	return each(l.items, func(one listed) any { return one.document })
}

func (l *listing) states() []string {
	return each(l.items, func(one listed) string { return one.state })
}

// document returns the document that -o json prints.
func (l *listing) document() any {
	if l.single && len(l.items) == 1 {
		return l.items[0].document
	}
	return l.list(l.documents())
}

// printer writes listings in an output format. It remembers its last output, so that a watch prints only changes.
type printer struct {
	io         *terminal.IO
	output     string
	sortBy     string
	containers bool
	noHeaders  bool
	view.LabelColumns
	// template and columns are parsed from -o. They are nil for other formats.
	template template
	columns  []column
	// shown has the states of the last output.
	shown map[string]bool
}

func (p *printer) isTable() bool {
	return terminal.IsText(p.output) || p.output == "wide" || p.columns != nil
}

// prepare reads the template of the output format. Callers use it first, so that a wrong template fails early.
func (p *printer) prepare(ctx context.Context, from *terminal.IO) error {
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

func (p *printer) print(l *listing) error {
	if !p.isTable() {
		p.changed(l.states())
		return p.write(l)
	}
	header, rows, err := p.table(l)
	if err != nil {
		return err
	}
	p.changed(statesOf(rows))
	if p.noHeaders {
		header = nil
	}
	return table.Write(p.io.Out, header, cellsOf(rows))
}

// write writes a document, a list of names, or the result of the user's template, as kubectl does.
func (p *printer) write(l *listing) error {
	switch {
	case terminal.IsDocument(p.output):
		return terminal.WriteDocument(p.io.Out, p.output, l.document())
	case p.template != nil:
		return p.executeTemplate(l.document())
	}
	for _, one := range l.items {
		p.io.Print("%s", one.name)
	}
	return nil
}

// printChanged writes the items that differ from the last output. Rows have the column widths of the whole table.
func (p *printer) printChanged(l *listing) error {
	if p.isTable() && len(l.items) > 0 {
		header, rows, err := p.table(l)
		if err != nil {
			return err
		}
		return p.printRows(header, cellsOf(rows), p.changed(statesOf(rows)))
	}
	some, changed := &listing{single: l.single, list: l.list}, p.changed(l.states())
	for i, one := range l.items {
		if changed[i] {
			some.items = append(some.items, one)
		}
	}
	if len(some.items) > 0 && !terminal.IsDocument(p.output) {
		return p.write(some)
	}
	for _, one := range some.items {
		if err := terminal.WriteDocument(p.io.Out, p.output, one.document); err != nil {
			return err
		}
	}
	return nil
}

// printRows writes the changed rows of a table, with the column widths of the whole table.
func (p *printer) printRows(header []string, rows [][]string, changed []bool) error {
	var whole strings.Builder
	if err := table.Write(&whole, header, rows); err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(whole.String()))
	for i := range rows {
		if changed[i] {
			fmt.Fprint(p.io.Out, lines[i+1]) //nolint:errcheck // a closed pipe ends the process
		}
	}
	return nil
}

func cellsOf(rows []view.Row) [][]string {
	return each(rows, func(row view.Row) []string { return row.Cells })
}

func statesOf(rows []view.Row) []string {
	return each(rows, func(row view.Row) string { return row.State })
}

// each returns a value of each element. The result is never nil, so that an empty list is printed as [].
func each[T, V any](list []T, of func(T) V) []V {
	values := make([]V, 0, len(list))
	for _, one := range list {
		values = append(values, of(one))
	}
	return values
}

// changed reports which states are not in the last output, and remembers the states. States have no elapsed times, so
// passing time is not a change.
func (p *printer) changed(states []string) []bool {
	now, changed := map[string]bool{}, make([]bool, len(states))
	for i, state := range states {
		now[state], changed[i] = true, !p.shown[state]
	}
	p.shown = now
	return changed
}

func (p *printer) table(l *listing) (header []string, rows []view.Row, err error) {
	if p.columns != nil {
		return customTable(p.columns, l.documents())
	}
	return l.table()
}

// executeTemplate writes the result of the user's template for a document.
func (p *printer) executeTemplate(document any) error {
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
