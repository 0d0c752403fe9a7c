package view

import (
	"io"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/runtime/why"
)

// WriteDifferences writes the differences between a node and the API server as a table.
func WriteDifferences(out io.Writer, list []why.Difference) error {
	rows := make([][]string, 0, len(list))
	for i := range list {
		d := &list[i]
		rows = append(rows, []string{d.Pod.Namespace, d.Pod.Name, string(d.Pod.UID), string(d.Kind), d.Message})
	}
	return table.Write(out, []string{"NAMESPACE", "NAME", "UID", "DIFFERENCE", "DETAILS"}, rows)
}
