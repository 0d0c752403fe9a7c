package expand

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// errTooLong says that an expanded text would be longer than it may be.
var errTooLong = errors.New("the expanded text is too long")

// expanding is a text whose references are being replaced, never longer than its limit.
type expanding struct {
	value func(name string) string
	built strings.Builder
	limit int
	// unclosed is set once no ")" follows: it is not looked for again.
	unclosed bool
}

func (e *expanding) write(text string) error {
	if len(text) > e.limit-e.built.Len() {
		return errTooLong
	}
	e.built.WriteString(text)
	return nil
}

// expand replaces each $(NAME) in a text by what value says it is, and each $$ by $ (kubelet:
// expansion.Expand). The kubelet's own function builds whatever it comes to, and looks for
// the end of each reference anew; a text of megabytes would cost gigabytes and hours. This
// one gives up beyond a limit in bytes and goes over the text once.
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

// replace is what stands for a "$" and the bytes after it that belong to it, and how many
// these are.
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
