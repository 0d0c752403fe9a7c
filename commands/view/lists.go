package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/terminal"
)

// Lists prints tables of pods, workloads and objects, as kubectl does.
type Lists struct {
	Now time.Time
	// Wide adds the columns of -o wide, Namespaces those of the namespaces.
	Wide, Namespaces bool
	LabelColumns
}

// Row is a line of a table.
type Row struct {
	Cells []string
	// State is what is in it without times: it changes when something happens.
	State string
}

// Add puts cells at the end of a row.
func (r *Row) Add(cells ...string) {
	for _, cell := range cells {
		r.addTimed(cell, cell)
	}
}

// addTimed puts a cell at the end of a row, of which the state is what does not change with the
// time alone.
func (r *Row) addTimed(cell, state string) {
	r.Cells = append(r.Cells, cell)
	r.State += state + "\x00"
}

// header has the columns of a kind between those that all kinds have.
func (v *Lists) header(columns ...string) []string {
	if v.Namespaces {
		columns = slices.Insert(columns, 0, "NAMESPACE")
	}
	return append(columns, v.labelHeader()...)
}

// row fills the columns of header.
func (v *Lists) row(meta *metav1.ObjectMeta, fill func(row *Row)) Row {
	var row Row
	if v.Namespaces {
		row.Add(meta.Namespace)
	}
	fill(&row)
	row.Add(v.labelCells(meta.Labels)...)
	return row
}

// wide leaves out what only -o wide shows.
func (v *Lists) wide(cells ...string) []string {
	if !v.Wide {
		return nil
	}
	return cells
}

// since is how long ago something happened.
func (v *Lists) since(at time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(v.Now.Sub(at))
}

// LabelColumns are the last columns of a table.
type LabelColumns struct {
	// Labels adds the values of labels, ShowLabels all labels.
	Labels     []string
	ShowLabels bool
}

// labelHeader names the columns of labels: a label by what follows its prefix, as in kubectl.
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
		cells = append(cells, cmp.Or(of[name], terminal.NoValue))
	}
	if c.ShowLabels {
		cells = append(cells, labels.FormatLabels(of))
	}
	return cells
}
