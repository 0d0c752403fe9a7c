// Package redaction removes the values of Secrets from texts that programs and runtimes wrote: error messages,
// termination messages, answers of probes. It promises that an accident does not disclose a value. A program that wants
// to disclose one can always find a form that this package does not know.
//
// Redacted are a value, the secret parts of a value that is a document (documents.go), and each run of 11 bytes of
// either, in the forms of a text that were seen in an output of podctl:
//
//   - as it is: errors of the runtime, and everything else
//   - quoted by Go, also several times: runc's error, quoted by the shim and by containerd
//   - JSON: termination messages and answers of probes of programs that log in JSON
//   - YAML and shell quotes: a configuration or a trace (sh -x) at the end of a log, as a termination message
//   - URL: the errors of net/http about a probe or a pull quote the URL
//   - base64: data of a Secret, auth of a docker configuration, the header of basic authentication
//   - broken into lines, without control characters and with a replaced byte: base64 of programs; messages in protobuf
//
// A text is compared as it is, once all escapes are undone, and once base64 in it is decoded. What is found is replaced
// in the original text.
//
// In: values of Secrets and a text. Out: the text. The package reads and writes nothing.
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
const Withheld = "(message withheld: the checkpoint of the pod cannot be read)"

// Withhold returns what may be shown of a message while the Secrets of its pod are not known.
func Withhold(message string) string {
	if message == "" {
		return ""
	}
	return Withheld
}

// Redactor removes values of Secrets from texts. A nil Redactor removes nothing. It can be used by several goroutines.
type Redactor struct {
	index func() *index
	// kept are words that stay, also if a value is in them.
	kept []string
}

// New returns a redactor of the values; nil if each is shorter than four bytes without the white space around it. The
// values are not copied and must not be changed. The index is built for the first text.
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

// Keeping returns a redactor that keeps some words where they stand alone: names without which a text says nothing.
func (r *Redactor) Keeping(words ...string) *Redactor {
	if r == nil {
		return nil
	}
	return &Redactor{index: r.index, kept: slices.Concat(r.kept, words)}
}

// Text returns a text without the values. The time it takes depends on the length of the text, and hardly on the
// number of values.
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

// Error returns an error whose text has none of the values, and which unwraps to the one given. It returns that one if
// there is nothing to remove.
func (r *Redactor) Error(err error) error {
	if r == nil || err == nil {
		return err
	}
	if text := r.Text(err.Error()); text != err.Error() {
		return &redactedError{text: text, err: err}
	}
	return err
}

// render replaces what is hidden. It removes characters as a whole, and keeps what an earlier call has put in: a value
// may be the word in it.
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

// keep shows a word again where it is no part of a longer one.
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

// occurrences are the places of a word in a text.
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

// isNamePart reports whether the byte at some place of a text can be in the name of an object.
func isNamePart(text string, at int) bool {
	return at >= 0 && at < len(text) && (isWord(text[at]) || text[at] == '-' || text[at] == '/')
}
