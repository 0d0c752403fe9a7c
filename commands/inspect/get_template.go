package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
)

// template writes a value as the user says.
type template interface {
	Execute(w io.Writer, value any) error
}

// parsePath reads a JSONPath; braces and the leading point may be left out, as
// kubectl allows.
func parsePath(text string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(text, "{") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	path := jsonpath.New("pods").AllowMissingKeys(true)
	return path, path.Parse(text)
}

// column is one of the user's own table.
type column struct {
	header string
	path   *jsonpath.JSONPath
}

// columnsOfFile are the columns of a file as a command line has them: the file has the headers in
// its first line and the paths in the second (kubectl: NewCustomColumnsPrinterFromTemplate).
func columnsOfFile(text string) (string, error) {
	lines := strings.SplitN(strings.TrimSpace(text), "\n", 2)
	if len(lines) != 2 {
		return "", errors.New("the file needs a line of headers and a line of paths")
	}
	headers, paths := strings.Fields(lines[0]), strings.Fields(lines[1])
	if len(headers) != len(paths) {
		return "", fmt.Errorf("the file has %s and %s", view.Count(len(headers), "header"), view.Count(len(paths), "path"))
	}
	columns := make([]string, 0, len(headers))
	for i := range headers {
		columns = append(columns, headers[i]+":"+paths[i])
	}
	return strings.Join(columns, ","), nil
}

// parseColumns reads columns: HEADER:PATH,... (kubectl: NewCustomColumnsPrinterFromSpec).
func parseColumns(text string) ([]column, error) {
	parts := strings.Split(text, ",")
	columns := make([]column, 0, len(parts))
	for _, part := range parts {
		header, text, ok := strings.Cut(part, ":")
		if !ok || text == "" {
			return nil, fmt.Errorf("%q is no column; write HEADER:PATH, for example NAME:.metadata.name", part)
		}
		path, err := parsePath(text)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", header, err)
		}
		columns = append(columns, column{header, path})
	}
	return columns, nil
}

// customTable has one row for each pod, with the user's own columns.
func customTable[T any](columns []column, documents []T) (header []string, rows []view.Row, err error) {
	for _, c := range columns {
		header = append(header, c.header)
	}
	for _, document := range documents {
		data, err := asJSON(document)
		if err != nil {
			return nil, nil, err
		}
		var row view.Row
		for _, c := range columns {
			found, err := c.path.FindResults(data)
			if err != nil {
				return nil, nil, fmt.Errorf("column %s: %w", c.header, err)
			}
			row.Add(cellText(found))
		}
		rows = append(rows, row)
	}
	return header, rows, nil
}

// cellText is what a path has found, as kubectl prints it in a table.
func cellText(found [][]reflect.Value) string {
	var texts []string
	for _, list := range found {
		for _, value := range list {
			texts = append(texts, textOf(value.Interface()))
		}
	}
	if text := strings.Join(texts, ","); text != "" {
		return text
	}
	return terminal.NoValue
}

// asJSON is a value as its JSON has it: maps, lists, text, numbers. Whole numbers stay whole.
func asJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing json: %w", err)
	}
	var out any
	err = utiljson.Unmarshal(text, &out)
	return out, err
}
