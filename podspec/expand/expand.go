package expand

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// errTooLong reports an expanded text above the limit.
var errTooLong = errors.New("the expanded text is too long")

// expanding is a text during expansion. It never exceeds its limit.
type expanding struct {
	value func(name string) string
	built strings.Builder
	limit int
	// unclosed is set if no ")" follows, so that it is not searched again.
	unclosed bool
}

func (e *expanding) write(text string) error {
	if len(text) > e.limit-e.built.Len() {
		return errTooLong
	}
	e.built.WriteString(text)
	return nil
}

// expand replaces each $(NAME) in a text with the result of value, and each $$ with $ (kubelet: expansion.Expand). The
// kubelet's function has no limit and searches the end of each reference again, so a text of megabytes would take
// gigabytes and hours. This function stops at a limit in bytes and reads the text once.
func expand(text string, value func(name string) string, limit int) (string, error) {
	e := &expanding{value: value, limit: limit}
	for text != "" {
		before, rest, found := strings.Cut(text, "$")
		if err := e.write(before); err != nil {
			return "", err
		}
		if !found {
			break
		}
		piece, length := e.replace(rest)
		if err := e.write(piece); err != nil {
			return "", err
		}
		text = rest[length:]
	}
	return e.built.String(), nil
}

// replace returns the replacement of a "$" with the bytes after it that belong to it, and their number.
func (e *expanding) replace(rest string) (piece string, length int) {
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case rest == "" || r == '$':
		return "$", size
	case r != '(':
		return "$" + string(r), size
	}
	end := -1
	if !e.unclosed {
		end = strings.IndexByte(rest, ')')
	}
	if e.unclosed = end < 0; e.unclosed {
		return "$(", size
	}
	return e.value(rest[1:end]), end + 1
}
