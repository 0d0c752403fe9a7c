package commands

import "github.com/fatih/color"

// painter colours text when the user's terminal takes colours.
type painter struct{ on bool }

// paint decides by --color, NO_COLOR and whether the stream is a terminal.
func (g *globals) paint(tty bool) painter {
	switch g.color {
	case "always":
		return painter{on: true}
	case "never":
		return painter{}
	}
	return painter{on: tty && g.env.Getenv("NO_COLOR") == "" && g.env.Getenv("TERM") != "dumb"}
}

func (p painter) with(text string, attributes ...color.Attribute) string {
	if !p.on || text == "" {
		return text
	}
	c := color.New(attributes...)
	c.EnableColor()
	return c.Sprint(text)
}

func (p painter) dim(text string) string { return p.with(text, color.Faint) }

func (p painter) bold(text string) string { return p.with(text, color.Bold) }

// symbol colours a plan's symbol as terraform does: green for what comes, red
// for what goes, yellow for what changes.
func (p painter) symbol(symbol, text string) string {
	switch symbol {
	case symbolCreate:
		return p.with(text, color.FgGreen)
	case symbolStop:
		return p.with(text, color.FgRed)
	case symbolReplace, symbolUpdate:
		return p.with(text, color.FgYellow)
	case symbolHold:
		return p.with(text, color.FgCyan)
	}
	return p.dim(text)
}
