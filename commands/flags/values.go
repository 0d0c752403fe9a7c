package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Choice is a flag that takes one of a few words, and completes them.
type Choice struct {
	Value   *string
	Allowed []string
	// Start is the word that stands for no value.
	Start string
}

// Output is -o: text for people, or a document for programs.
func Output(value *string, allowed ...string) *Choice {
	return &Choice{Value: value, Allowed: append([]string{"text"}, allowed...), Start: "text"}
}

// Format is -o of a command that prints documents alone.
func Format(value *string) *Choice {
	return &Choice{Value: value, Allowed: []string{"yaml", "json"}, Start: "yaml"}
}

// Pull is --pull.
func Pull(value *string) *Choice {
	return &Choice{Value: value, Allowed: []string{"always", "missing", "never", ""}}
}

// String is the flag's value.
func (c *Choice) String() string {
	if c.Value == nil || *c.Value == "" {
		return c.Start
	}
	return *c.Value
}

// Set takes one of the allowed words.
func (c *Choice) Set(text string) error {
	if slices.Contains(c.Allowed, text) {
		*c.Value = text
		return nil
	}
	return fmt.Errorf("must be one of %s", strings.Join(c.Words(), ", "))
}

// Type names the flag's kind of value in the help.
func (c *Choice) Type() string { return "string" }

// Words are what the flag takes, without the empty one that stands for none.
func (c *Choice) Words() []string {
	return slices.DeleteFunc(slices.Clone(c.Allowed), func(word string) bool { return word == "" })
}

// The output formats that are a template of the user's, or the file of one.
const (
	JSONPath      = "jsonpath"
	CustomColumns = "custom-columns"
)

// fileSuffix is behind the name of a format whose template is in a file.
const fileSuffix = "-file"

// TemplateOutput is -o that takes a template too.
type TemplateOutput struct{ *Choice }

// Set takes one of the words, or the template of a format.
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

// Words are those of the Choice, and the beginnings of templates.
func (o *TemplateOutput) Words() []string {
	words := o.Choice.Words()
	for _, format := range templateFormats() {
		words = append(words, format+"=", format+fileSuffix+"=")
	}
	return words
}

func templateFormats() []string { return []string{JSONPath, CustomColumns} }

// SplitTemplate splits an output format into its name and its template, or the file with the
// template; no name for a format without a template.
func SplitTemplate(output string) (format, text string, isFile bool) {
	name, text, found := strings.Cut(output, "=")
	format, isFile = strings.CutSuffix(name, fileSuffix)
	if !found || text == "" || !slices.Contains(templateFormats(), format) {
		return "", "", false
	}
	return format, text, isFile
}

// Limit is a flag that bounds how long something takes.
type Limit struct {
	Value *time.Duration
	// Required refuses zero, which otherwise means that there is no bound.
	Required bool
}

// String is the flag's value, zero as the help takes it for no default.
func (l *Limit) String() string {
	if l.Value == nil || *l.Value == 0 {
		return "0"
	}
	return l.Value.String()
}

// Set takes a duration that can pass.
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

// Type names the flag's kind of value in the help.
func (l *Limit) Type() string { return "duration" }
