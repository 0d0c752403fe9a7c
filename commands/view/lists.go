package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/table"
)

// Lists formats tables of pods, workloads and objects, as kubectl does.
type Lists struct {
	Now time.Time
	// Wide adds the columns of -o wide, Namespaces the column with the namespace.
	Wide, Namespaces bool
	LabelColumns
}

// Row is a row of a table.
type Row struct {
	Cells []string
	// State has the contents of the row without elapsed times, so that it differs only after a change.
	State string
}

// Add appends cells.
func (r *Row) Add(cells ...string) {
	for _, cell := range cells {
		r.addTimed(cell, cell)
	}
}

// addTimed appends a cell that contains an elapsed time. state is its contribution to State.
func (r *Row) addTimed(cell, state string) {
	r.Cells = append(r.Cells, cell)
	r.State += state + "\x00"
}

// header returns the columns of a kind between the columns that all kinds have.
func (v *Lists) header(columns ...string) []string {
	if v.Namespaces {
		columns = slices.Insert(columns, 0, "NAMESPACE")
	}
	return append(columns, v.labelHeader()...)
}

// row returns a row with the columns of header. fill adds the cells of the kind.
func (v *Lists) row(meta *metav1.ObjectMeta, fill func(row *Row)) Row {
	var row Row
	if v.Namespaces {
		row.Add(meta.Namespace)
	}
	fill(&row)
	row.Add(v.labelCells(meta.Labels)...)
	return row
}

// wide returns cells with -o wide, and otherwise nil.
func (v *Lists) wide(cells ...string) []string {
	if !v.Wide {
		return nil
	}
	return cells
}

// since returns the time since at.
func (v *Lists) since(at time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(v.Now.Sub(at))
}

// LabelColumns are the last columns of a table.
type LabelColumns struct {
	// Labels are the labels that get a column of their own. ShowLabels adds a column with all labels.
	Labels     []string
	ShowLabels bool
}

// labelHeader returns the headers of the label columns. Like kubectl, it drops the prefix of a label.
func (c *LabelColumns) labelHeader() (header []string) {
	for _, name := range c.Labels {
		header = append(header, strings.ToUpper(name[strings.LastIndex(name, "/")+1:]))
	}
	if c.ShowLabels {
		header = append(header, "LABELS")
	}
	return header
}

func (c *LabelColumns) labelCells(of map[string]string) (cells []string) {
	for _, name := range c.Labels {
		cells = append(cells, cmp.Or(of[name], table.NoValue))
	}
	if c.ShowLabels {
		cells = append(cells, labels.FormatLabels(of))
	}
	return cells
}
