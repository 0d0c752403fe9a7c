// Package redaction takes the values of secrets out of texts that others wrote: messages
// of programs, errors of runtimes, answers of probes. They may repeat a value as it is, in
// quotes, escaped, encoded, wrapped or cut off.
//
// A text is compared as it is and as it reads once escapes and encodings are undone, so
// that no form has to be listed. What is found is replaced in the text as it was given.
//
// In: values of secrets and a text. Out: the text. The package reads and writes nothing.
package redaction

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Hidden stands where the value of a secret was.
const Hidden = "(secret)"

// Withheld stands for a message of a pod whose secrets are not known.
const Withheld = "(message withheld: the checkpoint of the pod cannot be read)"

// Withhold returns what may be told of a message while the secrets of its pod are not known.
func Withhold(message string) string {
	if message == "" {
		return ""
	}
	return Withheld
}

// Redactor takes values of secrets out of texts. A nil Redactor takes out nothing. It may
// be used from several goroutines.
type Redactor struct {
	index func() *index
	// kept are words that stay, also where a value is in them.
	kept []string
}

// New returns a redactor of the values; nil when none of them is long enough to be looked
// for: four bytes, without the white space around it. The values are not copied and must not be changed. What is needed to find them is
// computed with the first text.
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

// Keeping returns a redactor that leaves some words as they are where they stand alone: names
// that everybody may read, and without which a text says nothing.
func (r *Redactor) Keeping(words ...string) *Redactor {
	if r == nil {
		return nil
	}
	return &Redactor{index: r.index, kept: slices.Concat(r.kept, words)}
}

// Text returns a text without the values. It takes time in proportion to the length of the
// text, and hardly more when there are many values or when they resemble each other.
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

// redactedError is an error in other words.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.err }

// Error returns an error that says the same without the values, and unwraps to the one
// given. That one is returned when there is nothing to take out.
func (r *Redactor) Error(err error) error {
	if r == nil || err == nil {
		return err
	}
	if text := r.Text(err.Error()); text != err.Error() {
		return &redactedError{text: text, err: err}
	}
	return err
}

// render replaces what is hidden. A character goes as a whole, and what was replaced
// before stays as it is: the word in it may be somebody's password.
func (s *scan) render(text string) string {
	if !s.found {
		return text
	}
	s.keepMarkers(text)
	var b strings.Builder
	before := false
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		now := false
		for j := i; j < i+size; j++ {
			now = now || s.hidden[j]
		}
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

func (s *scan) keepMarkers(text string) {
	for at := range occurrences(text, Hidden) {
		s.mark(at, at+len(Hidden), true)
	}
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

// isNamePart reports whether the byte at some place of a text may be in the name of an object.
func isNamePart(text string, at int) bool {
	return at >= 0 && at < len(text) && (isWord(text[at]) || text[at] == '-' || text[at] == '/')
}
