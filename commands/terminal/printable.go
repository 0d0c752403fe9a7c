package terminal

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// isVisible reports whether a character is visible or a space. Control and format characters and unassigned characters
// are not, for example those that change the writing direction.
func isVisible(r rune) bool {
	return r < utf8.RuneSelf && r >= ' ' && r != 0x7f || r >= utf8.RuneSelf && unicode.IsGraphic(r)
}

// Printable makes a text from an image, a log or a manifest safe for a terminal. It escapes invisible characters except
// line feeds and tabs.
func Printable(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "\\x%02x", text[i])
		case r == '\n' || r == '\t' || isVisible(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, "\\x%02x", r)
		case r < 0x10000:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
		i += size
	}
	return b.String()
}

// PrintableLine is like Printable, and also escapes line feeds.
func PrintableLine(text string) string {
	return strings.ReplaceAll(Printable(text), "\n", `\n`)
}

// PrintableLines is like Printable for a text with several lines. It indents all lines except the first, so that they
// cannot look like lines of podctl.
func PrintableLines(text string) string {
	lines := strings.Split(Printable(strings.TrimRight(text, "\n")), "\n")
	for i := 1; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "  ") && lines[i] != "" {
			lines[i] = "  " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// VisibleJSON escapes the invisible characters in the strings of a JSON document. Its value does not change. Characters
// beyond U+FFFF remain, because JSON can only escape them as pairs, which YAML parsers refuse. podctl also reads its
// documents as YAML.
func VisibleJSON(document []byte) []byte {
	return escapeJSON(document, func(r rune) string {
		if r > 0xffff {
			return string(r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// escapeJSON replaces invisible characters. Outside of strings, a JSON document has none except white space.
func escapeJSON(document []byte, escape func(rune) string) []byte {
	if !bytes.ContainsFunc(document, isHidden) {
		return document
	}
	var b bytes.Buffer
	for _, r := range string(document) {
		if isHidden(r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

func isHidden(r rune) bool {
	return !isVisible(r) && r != '\n' && r != '\t' && r != '\r'
}

// visibleYAML converts a JSON document to YAML and escapes invisible characters. The library escapes only control
// characters, and only quotes texts that contain one. So each other invisible character is first replaced by a mark:
// U+0001, a word that the document does not contain, and the code. After the conversion, the marks are replaced by
// escapes.
func visibleYAML(document []byte) ([]byte, error) {
	word := "x"
	for bytes.Contains(document, []byte(word)) {
		word = "x" + strconv.Itoa(len(word)) + word
	}
	marked := escapeJSON(document, func(r rune) string { return fmt.Sprintf(`\u0001%s%x;`, word, r) })
	text, err := yaml.JSONToYAML(marked)
	if err != nil || bytes.Equal(marked, document) {
		return text, err
	}
	mark := regexp.MustCompile(`\\x01` + word + `([0-9a-f]+);`)
	return mark.ReplaceAllFunc(text, func(found []byte) []byte {
		code, err := strconv.ParseUint(string(mark.FindSubmatch(found)[1]), 16, 32)
		switch {
		case err != nil:
			return found
		case code < 0x100:
			return fmt.Appendf(nil, `\x%02X`, code)
		case code < 0x10000:
			return fmt.Appendf(nil, `\u%04X`, code)
		}
		return fmt.Appendf(nil, `\U%08X`, code)
	}), nil
}
