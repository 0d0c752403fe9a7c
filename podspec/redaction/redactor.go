// Package redaction removes the values of Secrets from texts of programs and runtimes: error messages, termination
// messages and answers of probes. It prevents accidental disclosure of a value. A program that wants to disclose one
// can always use a form that this package does not know.
//
// It redacts a value, the secret parts of a value that is a document (documents.go), and each run of 11 bytes of
// either. It finds them in the forms that occurred in output of podctl:
//
//   - unchanged: errors of the runtime, and everything else
//   - quoted by Go, also repeatedly: runc's error, quoted by the shim and by containerd
//   - JSON: termination messages and answers of probes of programs that log in JSON
//   - YAML and shell quotes: a configuration or a trace (sh -x) at the end of a log, as a termination message
//   - URL: the errors of net/http about a probe or a pull quote the URL
//   - base64: data of a Secret, auth of a docker configuration, the header of basic authentication
//   - broken into lines, without control characters and with a replaced byte: base64 of programs; messages in protobuf
//
// It searches the original text, the text with all escapes decoded, and the decoded base64 in that. It replaces matches
// in the original text.
//
// The input is values of Secrets and a text. The result is the text without them. The package reads and writes no
// files.
package redaction

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Hidden replaces the value of a Secret.
const Hidden = "(secret)"

// Withheld replaces a message of a pod whose Secrets are not known.
const Withheld = "(message withheld: the Secrets of the pod are unknown)"

// Withhold returns the text to show instead of a message while the Secrets of its pod are not known.
func Withhold(message string) string {
	if message == "" {
		return ""
	}
	return Withheld
}

// Redactor removes values of Secrets from texts. A nil Redactor removes nothing. Several goroutines may use it.
type Redactor struct {
	index func() *index
	// kept are words that stay, even if they contain a value.
	kept []string
}

// New returns a redactor of the values, or nil if each has less than four bytes without surrounding white space. The
// values are not copied and must not change. The index is built for the first text.
func New(values ...[]byte) *Redactor {
	var kept [][]byte
	for _, value := range values {
		if len(bytes.TrimSpace(value)) >= shortest {
			kept = append(kept, value)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return &Redactor{index: sync.OnceValue(func() *index { return newIndex(kept) })}
}

// Keeping returns a redactor that keeps words where they stand alone: names without which a text is useless.
func (r *Redactor) Keeping(words ...string) *Redactor {
	if r == nil {
		return nil
	}
	return &Redactor{index: r.index, kept: slices.Concat(r.kept, words)}
}

// Text returns a text without the values. The time depends on the length of the text, and hardly on the number of
// values.
func (r *Redactor) Text(text string) string {
	if r == nil || len(text) < shortest {
		return text
	}
	s := &scan{index: r.index(), hidden: make([]bool, len(text))}
	s.read(viewOf(text), maxEncodings)
	for _, word := range r.kept {
		s.keep(text, word)
	}
	return s.render(text)
}

// redactedError is an error with another text.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.err }

// Error returns an error whose text has none of the values, and which unwraps to err. It returns err if there is
// nothing to remove.
func (r *Redactor) Error(err error) error {
	if r == nil || err == nil {
		return err
	}
	if text := r.Text(err.Error()); text != err.Error() {
		return &redactedError{text: text, err: err}
	}
	return err
}

// render replaces the hidden parts. It removes whole characters, and keeps the results of earlier calls, because Hidden
// may itself contain a value.
func (s *scan) render(text string) string {
	if !s.found {
		return text
	}
	for at := range occurrences(text, Hidden) {
		s.mark(at, at+len(Hidden), true)
	}
	var b strings.Builder
	before := false
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		now := slices.Contains(s.hidden[i:i+size], true)
		switch {
		case !now:
			b.WriteString(text[i : i+size])
		case !before:
			b.WriteString(Hidden)
		}
		before = now
		i += size
	}
	return b.String()
}

// keep shows a word again where it is not part of a longer one.
func (s *scan) keep(text, word string) {
	for at := range occurrences(text, word) {
		if end := at + len(word); !isNamePart(text, at-1) && !isNamePart(text, end) {
			s.mark(at, end, false)
		}
	}
}

func (s *scan) mark(begin, end int, hidden bool) {
	for i := begin; i < end; i++ {
		s.hidden[i] = hidden
	}
}

// occurrences returns the offsets of a word in a text.
func occurrences(text, word string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; word != ""; at += len(word) {
			i := strings.Index(text[at:], word)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i
		}
	}
}

// isNamePart reports whether the byte at an offset can be part of an object's name.
func isNamePart(text string, at int) bool {
	return at >= 0 && at < len(text) && (isWord(text[at]) || text[at] == '-' || text[at] == '/')
}
