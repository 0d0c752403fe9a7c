package redaction

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The lengths that count, in bytes.
const (
	// shortest is the shortest value that is looked for. What is shorter is no secret, and
	// would be found everywhere.
	shortest = 4
	// window is how much of a value is looked up at once, and stride how far the windows of
	// a value are from each other.
	window, stride = 8, 4
	// reach is how far from a window the end of a piece may be, piece the shortest piece
	// that is found wherever it is.
	reach = stride - 1
	piece = window + reach
	// shortestLine is the shortest line of a value that is looked for by itself.
	shortestLine = 8
	// maxPlaces is how many places one window is remembered at. One that is in more of them
	// is hidden wherever it is.
	maxPlaces = 64
)

// index is what texts are compared with.
type index struct {
	// short are values with less than piece bytes, and lengths has for the first four bytes
	// of some how long they are: one bit for each length.
	short   map[string]pattern
	lengths map[uint32]uint32
	// wholes are structured values without white space.
	wholes wholes
	// forms are the texts that pieces are of; windows has for each window its first place,
	// common the windows that have too many.
	forms   [][]byte
	windows map[uint64]int32
	places  []place
	common  map[uint64]bool
	// heads and tails are beginnings and ends of values, with less than piece bytes.
	heads, tails map[string]bool
	seen         map[string]bool
}

// pattern is how a short value is found.
type pattern struct {
	// anywhere: it is found as a part of a word too.
	anywhere bool
	// padded: it may have the padding of base64 after it.
	padded bool
}

// place is where a window is in a form; next is the next place of the same window, 0 for
// none.
type place struct{ form, at, next int32 }

func newIndex(values [][]byte) *index {
	x := &index{
		short: map[string]pattern{}, lengths: map[uint32]uint32{}, windows: map[uint64]int32{}, places: make([]place, 1),
		common: map[uint64]bool{}, heads: map[string]bool{}, tails: map[string]bool{}, seen: map[string]bool{},
	}
	p, structured := &parts{seen: map[part]bool{}}, [][]byte(nil)
	for _, value := range values {
		if whole := x.addValue(p, string(value)); len(whole) >= shortest {
			structured = append(structured, whole)
		}
	}
	x.wholes = newWholes(structured)
	x.seen = nil
	return x
}

// addValue adds the parts of a value that are secret. It returns a structured one without
// white space.
func (x *index) addValue(p *parts, value string) (whole []byte) {
	for _, text := range []string{value, strings.TrimSpace(value)} {
		x.addShort(text, true)
	}
	for _, leaf := range p.of(value) {
		x.addShort(leaf.text, !leaf.word)
		x.addShort(string(canonical(leaf.text).text), !leaf.word)
		x.addForms(leaf)
	}
	if p.structured {
		return canonical(value).bare().text
	}
	return nil
}

// addShort adds a value that has no pieces, and its encodings, which have none either.
func (x *index) addShort(value string, anywhere bool) {
	if len(value) < shortest || len(value) >= piece {
		return
	}
	raw := []byte(value)
	x.addPattern(value, pattern{anywhere: anywhere})
	x.addPattern(hex.EncodeToString(raw), pattern{anywhere: true})
	x.addPattern(strings.ToUpper(hex.EncodeToString(raw)), pattern{anywhere: true})
	x.addPattern(base64.RawStdEncoding.EncodeToString(raw), pattern{anywhere: true, padded: true})
	x.addPattern(base64.RawURLEncoding.EncodeToString(raw), pattern{anywhere: true, padded: true})
}

func (x *index) addPattern(text string, p pattern) {
	before := x.short[text]
	x.short[text] = pattern{anywhere: p.anywhere || before.anywhere, padded: p.padded || before.padded}
	x.lengths[binary.LittleEndian.Uint32([]byte(text))] |= 1 << len(text)
}

// addForms adds a leaf as texts may have it: without what is lost on the way, with its own
// escapes undone, and as it is when it is no text.
func (x *index) addForms(leaf part) {
	raw := viewOf(leaf.text)
	forms := [][]byte{raw.bare().text, canonical(leaf.text).bare().text}
	if strings.ContainsFunc(leaf.text, notText) {
		forms = append(forms, raw.text)
	}
	for _, form := range forms {
		if len(form) < shortest || x.seen[string(form)] {
			continue
		}
		x.seen[string(form)] = true
		if !leaf.word {
			x.addEnds(form)
		}
		if len(form) >= piece {
			x.addWindows(form)
		}
	}
}

func notText(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r)
}

// canonical is a text with all escapes undone.
func canonical(text string) view {
	v, changed := viewOf(text), true
	for level := 0; changed && level < maxLevels; level++ {
		v, changed = v.unescaped()
	}
	return v
}

func (x *index) addEnds(form []byte) {
	for n := shortest; n < min(len(form), piece); n++ {
		x.heads[string(form[:n])] = true
		x.tails[string(form[len(form)-n:])] = true
	}
}

func (x *index) addWindows(form []byte) {
	x.forms = append(x.forms, form)
	here := int32(len(x.forms) - 1) //nolint:gosec // the values together are far smaller
	for at := 0; at+window <= len(form); at += stride {
		x.addWindow(place{form: here, at: int32(at)}) //nolint:gosec // as above
	}
	// The end of a form may be nearer to its last window than a stride.
	x.addWindow(place{form: here, at: int32(len(form) - window)}) //nolint:gosec // as above
}

// addWindow adds a window at one place. Places that nothing tells apart within reach are
// one.
func (x *index) addWindow(p place) {
	around := x.around(&p)
	key := binary.LittleEndian.Uint64(x.forms[p.form][p.at:])
	if x.common[key] {
		return
	}
	p.next = x.windows[key]
	count := 0
	for at := p.next; at != 0; at = x.places[at].next {
		if bytes.Equal(x.around(&x.places[at]), around) {
			return
		}
		count++
	}
	if count >= maxPlaces {
		x.common[key] = true
		return
	}
	x.places = append(x.places, p)
	x.windows[key] = int32(len(x.places) - 1) //nolint:gosec // as above
}

// around is a window with what is within reach of it.
func (x *index) around(p *place) []byte {
	form := x.forms[p.form]
	return form[max(int(p.at)-reach, 0):min(int(p.at)+window+reach, len(form))]
}

// extent is how many bytes before and after a window at some place of a text are as in the
// form, within reach.
func (x *index) extent(p *place, text []byte, i int) (before, after int) {
	form, at := x.forms[p.form], int(p.at)
	for before < reach && i > before && at > before && text[i-before-1] == form[at-before-1] {
		before++
	}
	for after < reach && i+window+after < len(text) && at+window+after < len(form) && text[i+window+after] == form[at+window+after] {
		after++
	}
	return before, after
}
