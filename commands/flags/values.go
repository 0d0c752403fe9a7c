package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Choice is a flag that takes one of several words, with completion.
type Choice struct {
	Value   *string
	Allowed []string
	// Start is the value shown if none is set.
	Start string
}

// Output returns the flag -o for a command with text output and the allowed document formats.
func Output(value *string, allowed ...string) *Choice {
	return &Choice{Value: value, Allowed: append([]string{"text"}, allowed...), Start: "text"}
}

// Format returns the flag -o for a command that prints only documents.
func Format(value *string) *Choice {
	return &Choice{Value: value, Allowed: []string{"yaml", "json"}, Start: "yaml"}
}

// Pull returns the flag --pull.
func Pull(value *string) *Choice {
	return &Choice{Value: value, Allowed: []string{"always", "missing", "never", ""}}
}

// String returns the value of the flag.
func (c *Choice) String() string {
	if c.Value == nil || *c.Value == "" {
		return c.Start
	}
	return *c.Value
}

// Set accepts one of the allowed words.
func (c *Choice) Set(text string) error {
	if slices.Contains(c.Allowed, text) {
		*c.Value = text
		return nil
	}
	return fmt.Errorf("must be one of %s", strings.Join(c.Words(), ", "))
}

// Type returns the name of the value in the help.
func (c *Choice) Type() string { return "string" }

// Words returns the allowed words without the empty one.
func (c *Choice) Words() []string {
	return slices.DeleteFunc(slices.Clone(c.Allowed), func(word string) bool { return word == "" })
}

// Output formats with a template from the user or from a file.
const (
	JSONPath      = "jsonpath"
	CustomColumns = "custom-columns"
)

// fileSuffix is the suffix of a format whose template is in a file.
const fileSuffix = "-file"

// TemplateOutput is a flag -o that also takes templates.
type TemplateOutput struct{ *Choice }

// Set accepts one of the words, or a format with its template.
func (o *TemplateOutput) Set(text string) error {
	if format, _, _ := SplitTemplate(text); format != "" {
		*o.Value = text
		return nil
	}
	if err := o.Choice.Set(text); err != nil {
		return fmt.Errorf("%w, jsonpath=TEMPLATE, custom-columns=COLUMNS, or one of these with -file=FILE", err)
	}
	return nil
}

// Words returns the words of the Choice, and the prefixes of the formats with templates.
func (o *TemplateOutput) Words() []string {
	words := o.Choice.Words()
	for _, format := range templateFormats() {
		words = append(words, format+"=", format+fileSuffix+"=")
	}
	return words
}

func templateFormats() []string { return []string{JSONPath, CustomColumns} }

// SplitTemplate splits an output format into its name and its template, or the file with the template. The name is
// empty if the format has no template.
func SplitTemplate(output string) (format, text string, isFile bool) {
	name, text, found := strings.Cut(output, "=")
	format, isFile = strings.CutSuffix(name, fileSuffix)
	if !found || text == "" || !slices.Contains(templateFormats(), format) {
		return "", "", false
	}
	return format, text, isFile
}

// Limit is a flag for a timeout.
type Limit struct {
	Value *time.Duration
	// Required refuses zero, which otherwise means no timeout.
	Required bool
}

// String returns the value. Zero is "0", which the help does not show as a default.
func (l *Limit) String() string {
	if l.Value == nil || *l.Value == 0 {
		return "0"
	}
	return l.Value.String()
}

// Set accepts a duration that is not negative.
func (l *Limit) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return errors.New("must not be negative")
	case d == 0 && l.Required:
		return errors.New("must be greater than zero")
	}
	*l.Value = d
	return nil
}

// Type returns the name of the value in the help.
func (l *Limit) Type() string { return "duration" }
