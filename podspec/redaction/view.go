package redaction

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a decoded form of a text. Byte i stands for the bytes from[i] up to to[i] of the original.
type view struct {
	text     []byte
	from, to []int32
}

// viewOf returns the view of an unchanged text.
func viewOf(text string) view {
	v := view{text: []byte(text), from: make([]int32, len(text)), to: make([]int32, len(text))}
	for i := range v.text {
		v.from[i], v.to[i] = int32(i), int32(i+1) // texts are bounded by far less
	}
	return v
}

// less returns an empty view with capacity for one derived from v.
func (v view) less() view {
	n := len(v.text)
	return view{text: make([]byte, 0, n), from: make([]int32, 0, n), to: make([]int32, 0, n)}
}

// add appends bytes that stand for the bytes begin to end of another view.
func (v *view) add(decoded []byte, of view, begin, end int) {
	for _, c := range decoded {
		v.text = append(v.text, c)
		v.from = append(v.from, of.from[begin])
		v.to = append(v.to, of.to[end-1])
	}
}

// maxLevels limits the nesting of escapes that are decoded: for example quotes within quotes within a document. Deeper
// nesting has more backslashes than text.
const maxLevels = 8

// unescaped returns the view with all escapes decoded: those of Go, JSON and URLs, and nested quotes of shells and
// YAML.
func (v view) unescaped() view {
	for range maxLevels {
		out := v.less()
		for i := 0; i < len(v.text); {
			if decoded, n := escape(v.text[i:]); n > 0 {
				out.add(decoded, v, i, i+n)
				i += n
				continue
			}
			out.add(v.text[i:i+1], v, i, i+1)
			i++
		}
		if len(out.text) == len(v.text) {
			break
		}
		v = out
	}
	return v
}

// escape decodes the escape at the beginning of a text and returns its length, or zero if there is none. An escape is
// always longer than its meaning.
func escape(rest []byte) ([]byte, int) {
	switch rest[0] {
	case '\\':
		return backslash(rest)
	case '%':
		if code, ok := number(rest, 1, 2); ok {
			return []byte{byte(code)}, 3 // it has two digits
		}
	case '\'', '"':
		for _, form := range []string{`'\''`, `'"'"'`, `''`, `""`} {
			if bytes.HasPrefix(rest, []byte(form)) {
				return rest[:1], len(form)
			}
		}
	}
	return nil, 0
}

func backslash(rest []byte) ([]byte, int) {
	if len(rest) < 2 {
		return nil, 0
	}
	c := rest[1]
	if i := strings.IndexByte("abfnrtv0", c); i >= 0 {
		return []byte{"\a\b\f\n\r\t\v\x00"[i]}, 2
	}
	switch code, ok := number(rest, 2, map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]); {
	case ok && c == 'x':
		return []byte{byte(code)}, 4 // it has two digits
	case ok && c == 'u':
		return utf16Escape(rest, code)
	case ok:
		return utf8.AppendRune(nil, code), 10
	case c < utf8.RuneSelf && !isWord(c):
		return rest[1:2], 2
	}
	return nil, 0
}

// utf16Escape decodes a JSON escape that may be the first half of a surrogate pair.
func utf16Escape(rest []byte, code rune) ([]byte, int) {
	if utf16.IsSurrogate(code) && len(rest) > 7 && rest[6] == '\\' && rest[7] == 'u' {
		if low, ok := number(rest, 8, 4); ok {
			return utf8.AppendRune(nil, utf16.DecodeRune(code, low)), 12
		}
	}
	return utf8.AppendRune(nil, code), 6
}

// number parses hexadecimal digits at an offset.
func number(rest []byte, at, digits int) (rune, bool) {
	if digits == 0 || len(rest) < at+digits {
		return 0, false
	}
	code, err := strconv.ParseUint(string(rest[at:at+digits]), 16, 31)
	return rune(code), err == nil // it has 31 bits
}

// hexDigit returns the value of a digit, or -1.
func hexDigit(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// bare returns the view without characters that may get lost or changed in transport. These are white space, the plus
// that stands for a blank in URLs, control characters, and invalid bytes.
func (v view) bare() view {
	// A line may end within a character.
	return v.without(unicode.IsSpace).without(func(r rune) bool {
		return r == '+' || r == utf8.RuneError || unicode.IsControl(r)
	})
}

func (v view) without(dropped func(rune) bool) view {
	out := v.less()
	for i := 0; i < len(v.text); {
		r, size := utf8.DecodeRune(v.text[i:])
		if !dropped(r) {
			out.text = append(out.text, v.text[i:i+size]...)
			out.from = append(out.from, v.from[i:i+size]...)
			out.to = append(out.to, v.to[i:i+size]...)
		}
		i += size
	}
	return out
}

// fringe is how many bytes at the end of a run may belong to another word behind a gap.
const fringe = 3

// afterGap returns the offset after the first gap within the fringe from i on, or i if there is none.
func (v view) afterGap(i int) int {
	for at := i; at < i+fringe; at++ {
		if v.to[at] < v.from[at+1] {
			return at + 1
		}
	}
	return i
}

// beforeGap returns the offset of the last gap within the fringe before end, or end if there is none.
func (v view) beforeGap(end int) int {
	for at := end - 1; at >= end-fringe; at-- {
		if v.to[at-1] < v.from[at] {
			return at
		}
	}
	return end
}

// base64Run is the minimum number of successive base64 digits that are decoded: those of a piece.
const base64Run = 14

// base64Digit returns the value of a digit of the standard or the URL alphabet, or -1.
func base64Digit(c byte) int {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
	i := strings.IndexByte(digits, c)
	if i >= 64 {
		i -= 2
	}
	return i
}

// decoded calls read with the decoded base64 in a view, also if it is broken into lines. Its beginning is unknown, so
// decoded tries each offset.
func (v view) decoded(read func(view)) {
	v = v.without(unicode.IsSpace)
	for i := 0; i < len(v.text); i++ {
		end := i
		for end < len(v.text) && base64Digit(v.text[end]) >= 0 {
			end++
		}
		if end-i >= base64Run {
			for skip := range 4 {
				read(v.decode(i+skip, end))
			}
		}
		i = end
	}
}

// decode decodes digits. It drops bits that do not fill a byte.
func (v view) decode(begin, end int) view {
	out := v.less()
	code, have := 0, 0
	for i := begin; i < end; i++ {
		code, have = code<<6|base64Digit(v.text[i]), have+6
		if have >= 8 {
			have -= 8
			out.add([]byte{byte(code >> have)}, v, i-1, i+1)
			code &= 1<<have - 1
		}
	}
	return out
}
