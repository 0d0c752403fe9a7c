// Package quote writes texts of others into messages so that they stay in their line.
package quote

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuote bounds what a problem repeats of one value, in bytes.
const maxQuote = 200

// Value writes a text of a manifest so that it stays in its line, and no more of it than helps
// to find it.
func Value(text string) string {
	if len(text) <= maxQuote {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:maxQuote]) + "…"
}

// OneLine escapes the characters that a terminal would obey and not show.
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
