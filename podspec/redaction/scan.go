package redaction

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxEncodings is how many encodings around each other are undone: a base64 document in
// which credentials are base64 once more, and one around both.
const maxEncodings = 3

// scan is one search in one text.
type scan struct {
	index *index
	// hidden has for every byte of the text whether it is taken out.
	hidden []bool
	found  bool
	// compared is how many values were compared with a part of the text.
	compared int
}

// read searches a view, what it reads once its escapes are undone, and what the encodings
// in it stand for.
func (s *scan) read(v view, encoded int) {
	if mail, changed := v.quotedPrintable(); changed {
		s.levels(mail, 0)
	}
	v = s.levels(v, 1)
	v.lists(s.search)
	if encoded == 0 {
		return
	}
	for _, e := range encodings() {
		e.decoded(v.joined(), func(inner view) {
			if inner.isText() {
				s.read(inner, encoded-1)
			} else {
				s.search(inner)
			}
		})
	}
}

// levels searches a view and what it reads as escapes are undone, level by level, and
// returns the last. Lines may have been broken within an escape, so where there are several
// they are put together first, too.
func (s *scan) levels(v view, broken int) view {
	changed := true
	for level := 0; changed && level <= maxLevels; level++ {
		s.search(v)
		if broken > 0 && bytes.IndexByte(v.text, '\n') >= 0 {
			s.levels(v.unbroken(), broken-1)
		}
		v, changed = v.unescaped()
	}
	return v
}

// search looks for values, pieces and the ends of a view.
func (s *scan) search(v view) {
	bare := v.bare()
	s.short(v)
	s.pieces(v)
	s.pieces(bare)
	s.wholes(bare)
	s.ends(bare)
}

// widestGap is how much of what was left out within a value goes with it, in bytes.
const widestGap = 64

// hide marks the place of a part of a view, with what was left out between its bytes.
func (s *scan) hide(v view, begin, end int) {
	s.found = true
	for i := begin; i < end; i++ {
		until := v.to[i]
		if i+1 < end && v.from[i+1] > until && v.from[i+1]-until <= widestGap {
			until = v.from[i+1]
		}
		for j := v.from[i]; j < until; j++ {
			s.hidden[j] = true
		}
	}
}

// short looks for values that are too short to have pieces, the longest first.
func (s *scan) short(v view) {
	for i := 0; i+shortest <= len(v.text); i++ {
		for lengths := s.index.lengths[binary.LittleEndian.Uint32(v.text[i:])]; lengths != 0; {
			n := bits.Len32(lengths) - 1
			lengths &^= 1 << n
			if i+n <= len(v.text) && s.shortAt(v, i, i+n) {
				break
			}
		}
	}
}

// shortAt hides a part of a view that is a short value, and reports whether it is one.
func (s *scan) shortAt(v view, begin, end int) bool {
	s.compared++
	p, found := s.index.short[string(v.text[begin:end])]
	if !found || !p.anywhere && !standsAlone(v.text, begin, end) {
		return false
	}
	for end < len(v.text) && p.padded && v.text[end] == '=' {
		end++
	}
	s.hide(v, begin, end)
	return true
}

// standsAlone reports whether a part of a text is no part of a longer word.
func standsAlone(text []byte, begin, end int) bool {
	return (begin == 0 || !isWord(text[begin-1])) && (end == len(text) || !isWord(text[end]))
}

// pieces looks for runs of at least piece bytes that a value has as well. Such a run has
// at least one of the value's windows in it, at most reach bytes from each end.
func (s *scan) pieces(v view) {
	for i := 0; i+window <= len(v.text); i++ {
		key := binary.LittleEndian.Uint64(v.text[i:])
		if s.index.common[key] {
			s.hide(v, i, i+window)
			continue
		}
		for at := s.index.windows[key]; at != 0; at = s.index.places[at].next {
			before, after := s.index.extent(&s.index.places[at], v.text, i)
			if window+before+after >= piece {
				s.hide(v, i-v.adjoining(i, -before), i+window+v.adjoining(i+window-1, after))
			}
		}
	}
}

// wholes looks for structured values as a whole: only their leaves have pieces.
func (s *scan) wholes(v view) {
	for i := 0; i+shortest <= len(v.text); i++ {
		n, compared := s.index.wholes.at(v.text[i:])
		s.compared += compared
		if n > 0 {
			s.hide(v, i, i+n)
			i += n - 1
		}
	}
}

// ends looks for the beginning of a value where a text may have been cut off, and for the
// end of one where a text may have been cut open: at its ends, and at an ellipsis.
func (s *scan) ends(v view) {
	s.tail(v, 0)
	s.head(v, len(v.text))
	opened := bytes.TrimLeft(v.text, openers)
	s.tail(v, len(v.text)-len(opened))
	s.head(v, len(bytes.TrimRight(v.text, closers)))
	for _, mark := range []string{"…", "..."} {
		for at := 0; ; {
			i := bytes.Index(v.text[at:], []byte(mark))
			if i < 0 {
				break
			}
			s.head(v, at+i)
			at += i + len(mark)
			s.tail(v, at)
		}
	}
}

// What may stand around a text that was cut before it was quoted.
const (
	openers = `"'` + "`([{<"
	closers = `"'` + "`)]}>.,;:\\"
)

// head hides what a value begins with and where the view is cut, also within an escape.
func (s *scan) head(v view, end int) {
	s.longestHead(v, end)
	if at := bytes.LastIndexAny(v.text[:end], `\%&`); at >= 0 && at >= end-longestEntity {
		s.longestHead(v, at)
	}
}

// tail hides what a value ends with and where the view is cut open, also within an escape:
// there is the rest of that first.
func (s *scan) tail(v view, begin int) {
	s.longestTail(v, begin)
	for at := begin; at < len(v.text) && at-begin < longestEntity && (hexDigit(v.text[at]) >= 0 || bytes.IndexByte([]byte("uxXU#;"), v.text[at]) >= 0); at++ {
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
