package redaction

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxEncodings is how many encodings around each other are decoded: a docker configuration has base64, and the Secret
// that it is in has it once more.
const maxEncodings = 2

// scan is one search in one text.
type scan struct {
	index *index
	// hidden has for every byte of the text whether it is removed.
	hidden []bool
	found  bool
	// compared is how often a part of the text was looked up among the short values.
	compared int
}

// read searches a view, the view with its escapes undone, and what the base64 in that stands for.
func (s *scan) read(v view, encodings int) {
	s.search(v)
	if plain := v.unescaped(); !bytes.Equal(plain.text, v.text) {
		s.search(plain)
		v = plain
	}
	if encodings > 0 {
		v.decoded(func(inner view) { s.read(inner, encodings-1) })
	}
}

// search looks for values, pieces and the ends of a view.
func (s *scan) search(v view) {
	bare := v.bare()
	s.short(v)
	s.pieces(v)
	if len(bare.text) != len(v.text) {
		s.pieces(bare)
	}
	s.ends(bare)
}

// widestGap is how much of what was left out within a value is removed with it, in bytes.
const widestGap = 64

// hide marks the place of a part of a view, with what was left out between its bytes.
func (s *scan) hide(v view, begin, end int) {
	s.found = true
	for i := begin; i < end; i++ {
		until := v.to[i]
		if i+1 < end && v.from[i+1] > until && v.from[i+1]-until <= widestGap {
			until = v.from[i+1]
		}
		s.mark(int(v.from[i]), int(until), true)
	}
}

// short looks for values that are too short to have pieces, the longest first.
func (s *scan) short(v view) {
	for i := 0; i+shortest <= len(v.text); i++ {
		for lengths := s.index.lengths[binary.LittleEndian.Uint32(v.text[i:])]; lengths != 0; {
			n := bits.Len32(lengths) - 1
			lengths &^= 1 << n
			if i+n <= len(v.text) && s.isShort(v.text, i, i+n) {
				s.hide(v, i, i+n)
				break
			}
		}
	}
}

// isShort reports whether a part of a text is a short value: one that is only a word must stand alone.
func (s *scan) isShort(text []byte, begin, end int) bool {
	s.compared++
	anywhere, found := s.index.short[string(text[begin:end])]
	alone := (begin == 0 || !isWord(text[begin-1])) && (end == len(text) || !isWord(text[end]))
	return found && (anywhere || alone)
}

// pieces looks for runs of a text that are in a longer value.
func (s *scan) pieces(v view) {
	for i := 0; i+piece <= len(v.text); i++ {
		end := i + piece
		for end <= len(v.text) && s.index.hasPiece(v.text[end-piece:end]) {
			end++
		}
		if end--; end-i >= piece {
			s.hide(v, v.afterGap(i), v.beforeGap(end))
			i = end - piece
		}
	}
}

// ends looks for the beginning of a value where a text may have been cut off, and for the end of one where a text may
// have been cut open: at its ends, and at an ellipsis.
func (s *scan) ends(v view) {
	s.tail(v, 0)
	s.head(v, len(v.text))
	s.tail(v, len(v.text)-len(bytes.TrimLeft(v.text, openers)))
	s.head(v, len(bytes.TrimRight(v.text, closers)))
	for _, mark := range []string{"…", "..."} {
		for at := range occurrences(string(v.text), mark) {
			s.head(v, at)
			s.tail(v, at+len(mark))
		}
	}
}

// These can stand around a text that was cut before it was quoted.
const (
	openers = `"'` + "`([{<"
	closers = `"'` + "`)]}>.,;:\\"
)

// longestEscape is the longest rest of an escape that is left where a text was cut within one, in bytes.
const longestEscape = 10

// head hides what a value begins with and where the view is cut, also within an escape.
func (s *scan) head(v view, end int) {
	s.longestHead(v, end)
	begin := max(end-longestEscape, 0)
	if at := bytes.LastIndexAny(v.text[begin:end], `\%`); at >= 0 {
		s.longestHead(v, begin+at)
	}
}

// tail hides what a value ends with and where the view is cut open, also within an escape: there is the rest of that
// first.
func (s *scan) tail(v view, begin int) {
	s.longestTail(v, begin)
	for at := begin; at < min(begin+longestEscape, len(v.text)) && (hexDigit(v.text[at]) >= 0 || v.text[at]|0x20 == 'u'); at++ {
		s.longestTail(v, at+1)
	}
}

// longestHead hides the longest part of a view up to some place that a value begins with.
func (s *scan) longestHead(v view, end int) {
	for n := min(piece-1, end); n >= shortest; n-- {
		if s.index.heads[string(v.text[end-n:end])] {
			s.hide(v, end-n, end)
			return
		}
	}
}

// longestTail hides the longest part of a view from some place on that a value ends with.
func (s *scan) longestTail(v view, begin int) {
	for n := min(piece-1, len(v.text)-begin); n >= shortest; n-- {
		if s.index.tails[string(v.text[begin:begin+n])] {
			s.hide(v, begin, begin+n)
			return
		}
	}
}
