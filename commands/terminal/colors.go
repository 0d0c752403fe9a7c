package terminal

import "github.com/fatih/color"

// Colors colour text when the user's terminal takes colours.
type Colors struct{ On bool }

// OutColors colours what is written to the standard output.
func (s *IO) OutColors() Colors { return Colors{On: s.colored(s.OutTTY)} }

// ErrColors colours what is written to the standard error.
func (s *IO) ErrColors() Colors { return Colors{On: s.colored(s.ErrTTY)} }

// colored decides by --color, NO_COLOR and whether the stream is a terminal.
func (s *IO) colored(tty bool) bool {
	switch s.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return tty && s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb"
}

// With gives a text attributes.
func (c Colors) With(text string, attributes ...color.Attribute) string {
	if !c.On || text == "" {
		return text
	}
	attributed := color.New(attributes...)
	attributed.EnableColor()
	return attributed.Sprint(text)
}

// Dim is for what matters less.
func (c Colors) Dim(text string) string { return c.With(text, color.Faint) }

// Bold is for what matters more.
func (c Colors) Bold(text string) string { return c.With(text, color.Bold) }

// Red is for what goes, or has failed.
func (c Colors) Red(text string) string { return c.With(text, color.FgRed) }

// Green is for what comes, or went well.
func (c Colors) Green(text string) string { return c.With(text, color.FgGreen) }

// Yellow is for what changes, and for warnings.
func (c Colors) Yellow(text string) string { return c.With(text, color.FgYellow) }

// Cyan is for what waits.
func (c Colors) Cyan(text string) string { return c.With(text, color.FgCyan) }
