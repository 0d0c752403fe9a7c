package commands

import (
	"encoding/json"
	"fmt"
	"io"

	units "github.com/docker/go-units"

	"github.com/podctl/podctl/runtime/model"
)

// outputFlag is -o: text for people, or a versioned document.
func outputFlag(value *string, allowed ...string) *choice {
	return &choice{value: value, allowed: append([]string{"text"}, allowed...), start: "text"}
}

// isText tells that the output is for people.
func isText(format string) bool { return format == "" || format == "text" }

// writeDocument writes a value as JSON or YAML. What is no visible character is escaped.
func writeDocument(w io.Writer, format string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", format, err)
	}
	if format == "yaml" {
		if text, err = visibleYAML(text); err != nil {
			return fmt.Errorf("writing %s: %w", format, err)
		}
		_, err = w.Write(text)
		return err
	}
	_, err = w.Write(append(visibleJSON(text), '\n'))
	return err
}

// generic is a value as its JSON has it: maps, lists, text, numbers.
func generic(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing json: %w", err)
	}
	var out any
	err = json.Unmarshal(text, &out)
	return out, err
}

// humanSize is a size in the units of docker and crictl.
func humanSize(bytes int64) string { return units.HumanSize(float64(bytes)) }

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// isDocument tells that an output is for programs.
func isDocument(output string) bool { return output == "json" || output == "yaml" }

// listDocument is a versioned list.
func listDocument[T any](kind string, items []T) any {
	return struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{model.APIVersion, kind, items}
}
