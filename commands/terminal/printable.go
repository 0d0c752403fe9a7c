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

// isVisible reports whether a character shows itself and does nothing else: it is no control
// character, turns no direction of writing round, has a width, and is assigned to something.
func isVisible(r rune) bool {
	return r < utf8.RuneSelf && r >= ' ' && r != 0x7f || r >= utf8.RuneSelf && unicode.IsGraphic(r)
}

// Printable makes a text that may come from an image, a log or a manifest safe for a
// terminal: characters that are not visible are shown as escapes. Line ends and tabs stay.
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

// PrintableLine is Printable for what has to stay on one line.
func PrintableLine(text string) string {
	return strings.ReplaceAll(Printable(text), "\n", `\n`)
}

// PrintableLines is Printable for a text that may have several lines, of which none but the
// first begins where podctl's own lines begin.
func PrintableLines(text string) string {
	lines := strings.Split(Printable(strings.TrimRight(text, "\n")), "\n")
	for i := 1; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "  ") && lines[i] != "" {
			lines[i] = "  " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// VisibleJSON is a JSON document with what is no visible character escaped in its strings.
// It is the same document. Characters beyond U+FFFF stay: JSON has no escape for them but
// pairs that YAML parsers refuse, and podctl reads its documents as YAML too.
func VisibleJSON(document []byte) []byte {
	return escapeJSON(document, func(r rune) string {
		if r > 0xffff {
			return string(r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// escapeJSON writes what is no visible character in another way. Outside of strings there
// is nothing of that kind but white space.
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

// visibleYAML turns a JSON document into YAML in which, too, what is no visible character is
// escaped. The library escapes control characters alone, and takes a text with them into
// the quotes that escapes need; so each of the others is put between two of them first, with
// a word that the document has nowhere.
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
