package redaction

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text as it reads in some way, with the place in the original of every byte:
// byte i stands for the original's bytes from[i] up to to[i].
type view struct {
	text     []byte
	from, to []int32
}

// viewOf is a text as it is.
func viewOf(text string) view {
	v := view{text: []byte(text), from: make([]int32, len(text)), to: make([]int32, len(text))}
	for i := range v.text {
		v.from[i], v.to[i] = int32(i), int32(i+1) //nolint:gosec // texts are bounded by far less
	}
	return v
}

// less is an empty view with room for one that is derived from v.
func (v view) less() view {
	n := len(v.text)
	return view{text: make([]byte, 0, n), from: make([]int32, 0, n), to: make([]int32, 0, n)}
}

// add appends bytes that stand for some bytes of another view.
func (v *view) add(decoded []byte, of view, begin, end int) {
	for _, c := range decoded {
		v.text = append(v.text, c)
		v.from = append(v.from, of.from[begin])
		v.to = append(v.to, of.to[end-1])
	}
}

// cut is a part of a view.
func (v view) cut(begin, end int) view {
	return view{text: v.text[begin:end], from: v.from[begin:end], to: v.to[begin:end]}
}

// maxLevels is how often escapes are undone: quotes within quotes within a document. What
// is nested deeper has more backslashes than text.
const maxLevels = 8

// unescaped is the view with one level of escapes undone: those of Go, JSON and C, of URLs,
// of HTML, and the doubled quotes of shells, YAML and CSV. It reports whether there were
// any.
func (v view) unescaped() (view, bool) {
	if !bytes.ContainsAny(v.text, `\%&`) && !bytes.Contains(v.text, []byte(`''`)) && !bytes.Contains(v.text, []byte(`""`)) {
		return v, false
	}
	out, changed := v.less(), false
	for i := 0; i < len(v.text); {
		decoded, n := escape(v.text[i:])
		if n == 0 {
			out.add(v.text[i:i+1], v, i, i+1)
			i++
			continue
		}
		changed = true
		out.add(decoded, v, i, i+n)
		i += n
	}
	return out, changed
}

// escape decodes the escape that a text begins with, and returns how long it is; zero when
// there is none.
func escape(rest []byte) ([]byte, int) {
	switch rest[0] {
	case '\\':
		return backslash(rest)
	case '%':
		if code, ok := number(rest, 1, 2, 16); ok {
			return []byte{byte(code)}, 3
		}
	case '&':
		return entity(rest)
	case '\'', '"':
		return quotes(rest)
	}
	return nil, 0
}

// quotes undoes what stands for a quote inside quotes.
func quotes(rest []byte) ([]byte, int) {
	for _, form := range []string{`'\''`, `'"'"'`, `''`, `""`} {
		if bytes.HasPrefix(rest, []byte(form)) {
			return rest[:1], len(form)
		}
	}
	return nil, 0
}

func backslash(rest []byte) ([]byte, int) {
	if len(rest) < 2 {
		return nil, 0
	}
	c := rest[1]
	if i := strings.IndexByte(`abefnrtv`, c); i >= 0 {
		return []byte{"\a\b\x1b\f\n\r\t\v"[i]}, 2
	}
	switch {
	case c == 'x':
		if code, ok := number(rest, 2, 2, 16); ok {
			return []byte{byte(code)}, 4
		}
	case c == 'u':
		return utf16Escape(rest)
	case c == 'U':
		if code, ok := number(rest, 2, 8, 16); ok {
			return utf8.AppendRune(nil, rune(code)), 10 //nolint:gosec // what is no rune becomes the replacement
		}
	case c >= '0' && c <= '3':
		if code, ok := number(rest, 1, 3, 8); ok {
			return []byte{byte(code)}, 4
		}
		if c == '0' {
			return []byte{0}, 2
		}
	case c == '\n':
		return nil, 2
	case c < utf8.RuneSelf && !isWord(c):
		return rest[1:2], 2
	}
	return nil, 0
}

func utf16Escape(rest []byte) ([]byte, int) {
	code, ok := number(rest, 2, 4, 16)
	if !ok {
		return bracedEscape(rest)
	}
	r := rune(code) //nolint:gosec // it has four digits
	if utf16.IsSurrogate(r) && len(rest) >= 12 && rest[6] == '\\' && rest[7] == 'u' {
		if low, ok := number(rest, 8, 4, 16); ok {
			return utf8.AppendRune(nil, utf16.DecodeRune(r, rune(low))), 12 //nolint:gosec // it has four digits
		}
	}
	return utf8.AppendRune(nil, r), 6
}

// bracedEscape decodes the escape of JavaScript and Rust, up to eight digits in braces.
func bracedEscape(rest []byte) ([]byte, int) {
	end := bytes.IndexByte(rest[:min(len(rest), 12)], '}')
	if end < 4 || rest[2] != '{' {
		return nil, 0
	}
	code, ok := number(rest, 3, end-3, 16)
	if !ok {
		return nil, 0
	}
	return utf8.AppendRune(nil, rune(code)), end + 1 //nolint:gosec // what is no rune becomes the replacement
}

// longestEntity is the longest entity of HTML that is decoded, in bytes.
const longestEntity = 10

func entity(rest []byte) ([]byte, int) {
	end := bytes.IndexByte(rest[:min(len(rest), longestEntity)], ';')
	if end < 3 {
		return nil, 0
	}
	name := string(rest[1:end])
	switch name {
	case "amp", "lt", "gt", "quot", "apos", "nbsp":
		return []byte{map[string]byte{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "nbsp": ' '}[name]}, end + 1
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		base := 10
		if hex := strings.TrimLeft(digits, "xX"); hex != digits {
			digits, base = hex, 16
		}
		if code, err := strconv.ParseUint(digits, base, 21); err == nil {
			return utf8.AppendRune(nil, rune(code)), end + 1 //nolint:gosec // it has 21 bits
		}
	}
	return nil, 0
}

// number reads so many digits of a number from some place on.
func number(rest []byte, at, digits, base int) (uint64, bool) {
	if len(rest) < at+digits {
		return 0, false
	}
	code := uint64(0)
	for _, c := range rest[at : at+digits] {
		digit := hexDigit(c)
		if digit < 0 || digit >= base {
			return 0, false
		}
		code = code*uint64(base) + uint64(digit) //nolint:gosec // both are small and positive
	}
	return code, true
}

// hexDigit is the value of a digit; -1 when it is none.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// bare is the view without what is lost or changed on the way of a text: white space,
// the plus that stands for a blank in URLs, control characters and what is not seen, sequences
// that colour terminals, and bytes that are no text.
func (v view) bare() view {
	var sequence terminalSequence
	return v.without(func(r rune) bool {
		return sequence.has(r) || r == '+' || r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
}

// terminalSequence is how far a text is in a control sequence of ECMA-48: ESC, a bracket,
// digits and marks, and one character that ends it.
type terminalSequence int

const (
	noSequence terminalSequence = iota
	afterEscape
	inSequence
)

// has reports whether the next character is within a sequence.
func (s *terminalSequence) has(r rune) bool {
	switch {
	case r == '\x1b':
		*s = afterEscape
		return true
	case *s == afterEscape && r == '[':
		*s = inSequence
		return true
	case *s == inSequence && r >= ' ' && r < '@':
		return true
	}
	ends := *s == inSequence && r >= '@' && r <= '~'
	*s = noSequence
	return ends
}

// joined is the view without white space: an encoding may be wrapped.
func (v view) joined() view { return v.without(unicode.IsSpace) }

// unbroken is the view in one line, without the indentation of the others.
func (v view) unbroken() view {
	begins := false
	return v.without(func(r rune) bool {
		begins = r == '\n' || r == '\r' || begins && unicode.IsSpace(r)
		return begins
	})
}

func (v view) without(dropped func(rune) bool) view {
	out := v.less()
	for i := 0; i < len(v.text); {
		r, size := rune(v.text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(v.text[i:])
		}
		if !dropped(r) {
			out.text = append(out.text, v.text[i:i+size]...)
			out.from = append(out.from, v.from[i:i+size]...)
			out.to = append(out.to, v.to[i:i+size]...)
		}
		i += size
	}
	return out
}

// encoding is a way to write bytes as digits of so many bits.
type encoding struct {
	bits int
	// group is how many digits stand for whole bytes, run the fewest in a row that are
	// decoded: those of a piece that is looked for.
	group, run int
	digit      func(byte) int
}

func encodings() []encoding {
	return []encoding{
		{bits: 6, group: 4, run: 14, digit: base64Digit},
		{bits: 4, group: 2, run: 20, digit: hexDigit},
	}
}

// base64Digit is the value of a digit of the standard or the URL alphabet; -1 when it is
// none.
func base64Digit(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return -1
}

// decoded calls read with what the runs of digits in a view stand for. Where the encoding
// began is not known, so every beginning is tried.
func (e encoding) decoded(v view, read func(view)) {
	for i := 0; i < len(v.text); {
		end := i
		for end < len(v.text) && e.digit(v.text[end]) >= 0 {
			end++
		}
		if end-i >= e.run {
			for skip := range e.group {
				read(e.decode(v.cut(i+skip, end)))
			}
		}
		i = end + 1
	}
}

// decode reads digits from the first one on; bits that make no byte are left out.
func (e encoding) decode(v view) view {
	out := v.less()
	bits, have, first := 0, 0, 0
	for i, c := range v.text {
		if have == 0 {
			first = i
		}
		bits, have = bits<<e.bits|e.digit(c), have+e.bits
		if have >= 8 {
			have -= 8
			out.add([]byte{byte(bits >> have)}, v, first, i+1)
			bits &= 1<<have - 1
			first = i
		}
	}
	return out
}

// isText reports whether most of a view is text: what was decoded from digits that stand
// for something else is not.
func (v view) isText() bool {
	odd := 0
	for _, c := range v.text {
		if c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			odd++
		}
	}
	return odd*4 <= len(v.text)
}

// adjoining is how many of the next n bytes, of those before when n is negative, follow each
// other in the original too. What only came together as something was left out between may
// be the end of a word before.
func (v view) adjoining(i, n int) int {
	count := 0
	for ; n < 0 && count < -n && v.to[i-count-1] == v.from[i-count]; count++ {
	}
	for ; n > 0 && count < n && v.to[i+count] == v.from[i+count+1]; count++ {
	}
	return count
}
