package redaction

import (
	"bytes"
	"strconv"
)

// lists calls read with what lists of bytes in a view stand for: numbers as Go and JSON print
// them, and hexadecimal digits with blanks, commas or colons in between.
func (v view) lists(read func(view)) {
	for _, base := range []int{10, 16} {
		v.list(base, read)
	}
}

func (v view) list(base int, read func(view)) {
	out := v.less()
	flush := func() {
		if len(out.text) >= shortest {
			read(out)
		}
		out = view{text: out.text[:0], from: out.from[:0], to: out.to[:0]}
	}
	for i := 0; i < len(v.text); {
		end := i
		for end < len(v.text) && isWord(v.text[end]) {
			end++
		}
		code, ok := byteOf(v.text[i:end], base)
		switch {
		case ok:
			out.add([]byte{code}, v, i, end)
		case end > i || bytes.IndexByte([]byte(" \t\r\n,:;"), v.text[i]) < 0:
			flush()
		}
		i = max(end, i+1)
	}
	flush()
}

// byteOf is the byte that a word of digits stands for.
func byteOf(word []byte, base int) (byte, bool) {
	digits, prefixed := bytes.CutPrefix(word, []byte("0x"))
	switch {
	case base == 10 && (prefixed || len(digits) > 3), base == 16 && (len(digits) > 2 || len(digits) < 2 && !prefixed):
		return 0, false
	}
	code, err := strconv.ParseUint(string(digits), base, 8)
	return byte(code), err == nil
}

// quotedPrintable is the view with the escapes of mail undone. They are no escapes as others
// are: what a setting has behind its = may look like one. It reports whether there were any.
func (v view) quotedPrintable() (view, bool) {
	out, changed := v.less(), false
	for i := 0; i < len(v.text); {
		decoded, n := v.text[i:i+1], 1
		if rest := v.text[i:]; rest[0] == '=' {
			if code, ok := number(rest, 1, 2, 16); ok {
				decoded, n = []byte{byte(code)}, 3
			} else if bytes.HasPrefix(rest, []byte("=\n")) {
				decoded, n = nil, 2
			} else if bytes.HasPrefix(rest, []byte("=\r\n")) {
				decoded, n = nil, 3
			}
		}
		changed = changed || n > 1
		out.add(decoded, v, i, i+n)
		i += n
	}
	return out, changed
}
