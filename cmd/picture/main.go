// Command picture draws the output of a terminal as an SVG. It reads text with colours from standard input and writes
// the picture to standard output.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Dimensions of the picture in pixels.
const (
	letter = 7.8
	row    = 18
	side   = 14
	top    = 34
)

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// dimmed is the colour of dim text. Some renderers ignore the opacity of a part of a text.
const dimmed = "#8f9591"

// escape returns text for SVG. Browsers collapse spaces, in spite of xml:space, but not no-break spaces.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", " ", "\u00a0").Replace(text)
}

// style is the look of a text: the terminal attributes that podctl uses.
type style struct {
	color     string
	bold, dim bool
}

// sgr matches escape sequences. Those that change the style end in m; all others are omitted.
var sgr = regexp.MustCompile(`\x1b\[([0-9;]*)([A-Za-z])`)

func draw(in io.Reader, out io.Writer) error {
	var lines []string
	width := 0
	var now style
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		text, columns := now.line(scanner.Text())
		lines, width = append(lines, text), max(width, columns)
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	var b strings.Builder
	w, h := int(float64(width)*letter)+2*side, top+row*len(lines)+side
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n",
		w, h, w, h)
	b.WriteString(`<rect width="100%" height="100%" rx="8" fill="#1d1f21"/>` + "\n")
	for i, color := range []string{"#ff5f56", "#ffbd2e", "#27c93f"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="16" r="5" fill="%s"/>`+"\n", side+4+16*i, color)
	}
	const fonts = `ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace`
	b.WriteString(`<g font-family="` + fonts + `" font-size="13" fill="#d5d8d6">` + "\n")
	for i, text := range lines {
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", side, top+row*i+13, text)
	}
	b.WriteString("</g>\n</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// line draws a line and keeps the style at its end.
func (s *style) line(text string) (drawn string, columns int) {
	var b strings.Builder
	put := func(part string) {
		columns += utf8.RuneCountInString(part)
		if part != "" {
			b.WriteString(s.span(part))
		}
	}
	for {
		at := sgr.FindStringSubmatchIndex(text)
		if at == nil {
			put(text)
			return b.String(), columns
		}
		put(text[:at[0]])
		if text[at[4]:at[5]] == "m" {
			s.change(strings.Split(text[at[2]:at[3]], ";"))
		}
		text = text[at[1]:]
	}
}

func (s *style) span(part string) string {
	color, attributes := s.color, ""
	if s.dim && color == "" {
		color = dimmed
	}
	if color != "" {
		attributes += fmt.Sprintf(` fill="%s"`, color)
	}
	if s.bold {
		attributes += ` font-weight="bold"`
	}
	return "<tspan" + attributes + ">" + escape(part) + "</tspan>"
}

func (s *style) change(codes []string) {
	for _, code := range codes {
		switch code {
		case "", "0":
			*s = style{}
		case "1":
			s.bold = true
		case "2":
			s.dim = true
		case "22":
			s.bold, s.dim = false, false
		case "39":
			s.color = ""
		default:
			if color := colorOf(code); color != "" {
				s.color = color
			}
		}
	}
}

// colorOf returns the colour of a code, or an empty string for one that podctl does not use.
func colorOf(code string) string {
	return map[string]string{
		"31": "#e06c75",
		"32": "#98c379",
		"33": "#e5c07b",
		"34": "#61afef",
		"35": "#c678dd",
		"36": "#56b6c2",
		"37": "#d5d8d6",
	}[code]
}
