// Package quote quotes external text in messages so that it stays on one line.
package quote

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuote limits the quoted bytes of one value.
const maxQuote = 200

// Value quotes a text of a manifest on one line, and truncates it if it is long.
func Value(text string) string {
	if len(text) <= maxQuote {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:maxQuote]) + "…"
}

// OneLine escapes control characters, which a terminal would interpret.
func OneLine(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
