package terminal

import (
	"encoding/json"
	"fmt"
	"io"
)

// IsText reports whether an output format is text for people.
func IsText(format string) bool { return format == "" || format == "text" }

// IsDocument reports whether an output format is a document for programs.
func IsDocument(format string) bool { return format == "json" || format == "yaml" }

// WriteDocument writes a value as JSON or YAML. It escapes invisible characters.
func WriteDocument(w io.Writer, format string, value any) error {
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
	_, err = w.Write(append(VisibleJSON(text), '\n'))
	return err
}
