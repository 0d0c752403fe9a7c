// Package table prints tables.
package table

import (
	"bytes"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/podctl/podctl/commands/terminal"
)

// NoValue is shown for a missing value, as in kubectl.
const NoValue = "<none>"

// gap is the number of blanks between columns.
const gap = 3

// Write prints rows under upper-case headers. Like in kubectl and nerdctl, there are no borders, and columns are
// left-aligned with three blanks between them.
func Write(w io.Writer, header []string, rows [][]string) error {
	var b bytes.Buffer
	t := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Left: "", Right: strings.Repeat(" ", gap), Overwrite: true}),
	)
	if header != nil {
		t.Header(header)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = terminal.Printable(strings.NewReplacer("\n", " ", "\t", " ").Replace(row[i]))
		}
		if err := t.Append(row); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	return WriteTrimmed(w, b.String())
}

// Width returns the maximum width of a line of such a table, in terminal columns.
func Width(header []string, rows [][]string) int {
	total := 0
	for i, name := range header {
		widest := displaywidth.String(name)
		for _, row := range rows {
			widest = max(widest, displaywidth.String(row[i]))
		}
		total += widest
	}
	return total + gap*max(len(header)-1, 0)
}

// WriteTrimmed writes lines without trailing blanks.
func WriteTrimmed(w io.Writer, text string) error {
	for line := range strings.Lines(text) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}
