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

// customTable has one row for each document, with the user's own columns.
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
