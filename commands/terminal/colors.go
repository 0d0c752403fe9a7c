package terminal

import "github.com/fatih/color"

// Colors colours text if On is set.
type Colors struct{ On bool }

// OutColors returns the colours for stdout.
func (s *IO) OutColors() Colors { return Colors{On: s.colored(s.OutTTY)} }

// ErrColors returns the colours for stderr.
func (s *IO) ErrColors() Colors { return Colors{On: s.colored(s.ErrTTY)} }

// colored evaluates --color, NO_COLOR, TERM, and whether the stream is a terminal.
func (s *IO) colored(tty bool) bool {
	switch s.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return tty && s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb"
}

// With returns a text with attributes.
func (c Colors) With(text string, attributes ...color.Attribute) string {
	if !c.On || text == "" {
		return text
	}
	attributed := color.New(attributes...)
	attributed.EnableColor()
	return attributed.Sprint(text)
}

// Dim is for less important text.
func (c Colors) Dim(text string) string { return c.With(text, color.Faint) }

// Bold is for important text.
func (c Colors) Bold(text string) string { return c.With(text, color.Bold) }

// Red is for removals and failures.
func (c Colors) Red(text string) string { return c.With(text, color.FgRed) }

// Green is for additions and success.
func (c Colors) Green(text string) string { return c.With(text, color.FgGreen) }

// Yellow is for changes and warnings.
func (c Colors) Yellow(text string) string { return c.With(text, color.FgYellow) }

// Cyan is for waits.
func (c Colors) Cyan(text string) string { return c.With(text, color.FgCyan) }
