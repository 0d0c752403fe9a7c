package redaction

import (
	"encoding/base64"
	"encoding/binary"
	"index/suffixarray"
	"strings"
)

// Lengths in bytes.
const (
	// shortest is the minimum length of a value. Shorter ones would match everywhere.
	shortest = 4
	// piece is the minimum length of a piece of a value that is found anywhere.
	piece = 11
)

// index holds the values to search for.
type index struct {
	// short holds the values with less than piece bytes, and whether they are found within a longer word. The map
	// lengths has the lengths for their first four bytes, one bit for each length.
	short   map[string]bool
	lengths map[uint32]uint32
	// pieces holds the longer values, joined. A piece may span two values, which does no harm.
	pieces *suffixarray.Index
	// heads and tails are beginnings and ends of values, with less than piece bytes.
	heads, tails map[string]bool
}

func newIndex(values [][]byte) *index {
	x := &index{
		short:   map[string]bool{},
		lengths: map[uint32]uint32{},
		heads:   map[string]bool{},
		tails:   map[string]bool{},
	}
	p := &parts{all: map[part]bool{}}
	for _, value := range values {
		for _, text := range []string{string(value), strings.TrimSpace(string(value))} {
			x.addShort(text, true)
		}
		p.value(string(value))
	}
	forms := map[string]bool{}
	for one := range p.all {
		x.addPart(one, forms)
	}
	var longer []byte
	for form := range forms {
		if len(form) >= piece {
			longer = append(append(longer, form...), 0)
		}
	}
	x.pieces = suffixarray.New(longer)
	return x
}

// addPart adds a part, the part with its escapes decoded, and both in the forms that texts may have.
func (x *index) addPart(one part, forms map[string]bool) {
	v := viewOf(one.text)
	for _, v := range []view{v, v.unescaped()} {
		x.addShort(string(v.text), !one.word)
		bare := string(v.bare().text)
		forms[bare] = true
		if strings.ContainsFunc(one.text, notText) {
			forms[string(v.text)] = true
		}
		if !one.word {
			x.addEnds(bare)
		}
	}
}

// addShort adds a value without pieces, and its base64, which is too short to be decoded.
func (x *index) addShort(value string, anywhere bool) {
	if len(value) < shortest || len(value) >= piece {
		return
	}
	x.addPattern(value, anywhere)
	for _, encoding := range []*base64.Encoding{
		base64.RawStdEncoding, base64.RawURLEncoding, base64.StdEncoding, base64.URLEncoding,
	} {
		x.addPattern(encoding.EncodeToString([]byte(value)), true)
	}
}

func (x *index) addPattern(text string, anywhere bool) {
	x.short[text] = anywhere || x.short[text]
	x.lengths[binary.LittleEndian.Uint32([]byte(text))] |= 1 << len(text)
}

func (x *index) addEnds(form string) {
	for n := shortest; n < min(len(form), piece); n++ {
		x.heads[form[:n]] = true
		x.tails[form[len(form)-n:]] = true
	}
}

func (x *index) hasPiece(text []byte) bool { return len(x.pieces.Lookup(text, 1)) > 0 }
