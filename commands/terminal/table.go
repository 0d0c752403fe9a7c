package terminal

import (
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// NoValue is shown for a missing value, as in kubectl.
const NoValue = "<none>"

// tableGap is the number of blanks between columns.
const tableGap = 3

// Table prints rows under upper-case headers. Like in kubectl and nerdctl, there are no borders, and columns are
// left-aligned with three blanks between them. Without headers and rows it prints nothing.
func Table(w io.Writer, header []string, rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = strings.TrimSpace(Printable(strings.NewReplacer("\n", " ", "\t", " ").Replace(row[i])))
		}
	}
	var b strings.Builder
	widths := columnWidths(header, rows)
	if header != nil {
		writeRow(&b, header, widths)
	}
	for _, row := range rows {
		writeRow(&b, row, widths)
	}
	return WriteTrimmed(w, b.String())
}

// writeRow writes the cells of a row, each padded to the width of its column.
func writeRow(b *strings.Builder, row []string, widths []int) {
	for i, cell := range row {
		b.WriteString(cell + strings.Repeat(" ", widths[i]-displaywidth.String(cell)+tableGap))
	}
	b.WriteByte('\n')
}

// columnWidths returns the width of each column without the gap after it, in terminal columns.
func columnWidths(header []string, rows [][]string) []int {
	var widths []int
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], displaywidth.String(cell))
		}
	}
	return widths
}

// TableWidth returns the maximum width of a line of such a table, in terminal columns.
func TableWidth(header []string, rows [][]string) int {
	total := tableGap * max(len(header)-1, 0)
	for _, width := range columnWidths(header, rows) {
		total += width
	}
	return total
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
