package view

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/podctl/podctl/commands/terminal"
)

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
