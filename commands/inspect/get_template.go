package inspect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/view"
)

// template writes a value in a format of the user.
type template interface {
	Execute(w io.Writer, value any) error
}

// parsePath parses a JSONPath. Like kubectl, it accepts a path without braces and leading dot.
func parsePath(text string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(text, "{") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	path := jsonpath.New("pods").AllowMissingKeys(true)
	return path, path.Parse(text)
}

// column is one of the user's custom columns.
type column struct {
	header string
	path   *jsonpath.JSONPath
}

// columnsOfFile converts a file with custom columns to the form of the command line. The file has the headers in its
// first line and the paths in its second (kubectl: NewCustomColumnsPrinterFromTemplate).
func columnsOfFile(text string) (string, error) {
	lines := strings.SplitN(strings.TrimSpace(text), "\n", 2)
	if len(lines) != 2 {
		return "", errors.New("the file needs a line of headers and a line of paths")
	}
	headers, paths := strings.Fields(lines[0]), strings.Fields(lines[1])
	if len(headers) != len(paths) {
		return "", fmt.Errorf("the file has %s and %s",
			view.Count(len(headers), "header"), view.Count(len(paths), "path"))
	}
	columns := make([]string, 0, len(headers))
	for i := range headers {
		columns = append(columns, headers[i]+":"+paths[i])
	}
	return strings.Join(columns, ","), nil
}

// parseColumns parses columns of the form HEADER:PATH,... (kubectl: NewCustomColumnsPrinterFromSpec).
func parseColumns(text string) ([]column, error) {
	parts := strings.Split(text, ",")
	columns := make([]column, 0, len(parts))
	for _, part := range parts {
		header, text, ok := strings.Cut(part, ":")
		if !ok || text == "" {
			return nil, fmt.Errorf("%q is not a column; write HEADER:PATH, for example NAME:.metadata.name", part)
		}
		path, err := parsePath(text)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", header, err)
		}
		columns = append(columns, column{header, path})
	}
	return columns, nil
}

// customTable returns a table with the user's columns and one row for each document.
func customTable(columns []column, documents []any) (header []string, rows []view.Row, err error) {
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

// cellText formats the results of a path for a table cell, as kubectl does.
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
	return table.NoValue
}

// asJSON converts a value to its JSON form: maps, lists, strings and numbers. Integers stay integers.
func asJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing json: %w", err)
	}
	var out any
	err = utiljson.Unmarshal(text, &out)
	return out, err
}

// sortByField sorts objects by the field of --sort-by. Like kubectl, it returns an error if no object has the field.
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
		if len(found) > 0 && len(found[0]) > 0 {
			keys[object] = found[0][0].Interface()
		}
		known = known || keys[object] != nil
	}
	if !known && len(objects) > 0 {
		return exit.Usagef("--sort-by: no %s has a field %s", kind, field)
	}
	slices.SortStableFunc(objects, func(a, b T) int { return compareValues(keys[a], keys[b]) })
	return nil
}

// compareValues compares numbers by value and everything else as text, which also sorts times in RFC 3339. A missing
// value comes first.
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
