package redaction

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxEncodings limits the levels of encoding that are decoded: a docker configuration has base64, and its Secret has it
// once more.
const maxEncodings = 2

// scan is one search in one text.
type scan struct {
	index *index
	// hidden marks the bytes of the text to remove.
	hidden []bool
	found  bool
	// compared counts the lookups among the short values.
	compared int
}

// read searches a view, the view with escapes decoded, and the decoded base64 in that.
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

// search looks for values, pieces, and the ends of a view.
func (s *scan) search(v view) {
	bare := v.bare()
	s.short(v)
	s.pieces(v)
	if len(bare.text) != len(v.text) {
		s.pieces(bare)
	}
	s.ends(bare)
}

// widestGap is the maximum number of omitted bytes within a value that are removed with it.
const widestGap = 64

// hide marks a part of a view in the text, with the bytes that the view omitted between.
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

// isShort reports whether a part of a text is a short value. A mere word must stand alone.
func (s *scan) isShort(text []byte, begin, end int) bool {
	s.compared++
	anywhere, found := s.index.short[string(text[begin:end])]
	alone := (begin == 0 || !isWord(text[begin-1])) && (end == len(text) || !isWord(text[end]))
	return found && (anywhere || alone)
}

// pieces looks for runs of a text that are part of a longer value.
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

// ends looks for parts of a value where a text may be truncated: at the ends of the text, and at an ellipsis. Before a
// truncation it looks for the beginning of a value, and after one for the end.
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

// Characters that may surround a text that was truncated before it was quoted.
const (
	openers = `"'` + "`([{<"
	closers = `"'` + "`)]}>.,;:\\"
)

// longestEscape is the maximum length in bytes of a partial escape at a truncation.
const longestEscape = 10

// head hides the beginning of a value where the view is truncated, also within an escape.
func (s *scan) head(v view, end int) {
	s.longestHead(v, end)
	begin := max(end-longestEscape, 0)
	if at := bytes.LastIndexAny(v.text[begin:end], `\%`); at >= 0 {
		s.longestHead(v, begin+at)
	}
}

// tail hides the end of a value where the beginning of the view is truncated, also after the rest of an escape.
func (s *scan) tail(v view, begin int) {
	s.longestTail(v, begin)
	end := min(begin+longestEscape, len(v.text))
	for at := begin; at < end && (hexDigit(v.text[at]) >= 0 || v.text[at]|0x20 == 'u'); at++ {
		s.longestTail(v, at+1)
	}
}

// longestHead hides the longest beginning of a value that ends at an offset of the view.
func (s *scan) longestHead(v view, end int) {
	for n := min(piece-1, end); n >= shortest; n-- {
		if s.index.heads[string(v.text[end-n:end])] {
			s.hide(v, end-n, end)
			return
		}
	}
}

// longestTail hides the longest end of a value that begins at an offset of the view.
func (s *scan) longestTail(v view, begin int) {
	for n := min(piece-1, len(v.text)-begin); n >= shortest; n-- {
		if s.index.tails[string(v.text[begin:begin+n])] {
			s.hide(v, begin, begin+n)
			return
		}
	}
}
