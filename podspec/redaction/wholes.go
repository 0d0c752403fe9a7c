package redaction

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// wholes are texts that are looked for as a whole, sorted. What a text begins with is found
// by a search in them, however many there are.
type wholes struct {
	texts [][]byte
	// shorter is for each the place of the longest other that it begins with; -1 for none.
	shorter []int
	// heads are their first four bytes: at most places of a text nothing is searched.
	heads map[uint32]bool
}

func newWholes(texts [][]byte) wholes {
	slices.SortFunc(texts, bytes.Compare)
	w := wholes{texts: slices.CompactFunc(texts, bytes.Equal), heads: map[uint32]bool{}}
	for i, text := range w.texts {
		at := i - 1
		for at >= 0 && !bytes.HasPrefix(text, w.texts[at]) {
			at = w.shorter[at]
		}
		w.shorter = append(w.shorter, at)
		w.heads[binary.LittleEndian.Uint32(text)] = true
	}
	return w
}

// at is the length of the longest whole that a text begins with, zero for none, and how many
// were compared.
func (w *wholes) at(text []byte) (length, compared int) {
	if !w.heads[binary.LittleEndian.Uint32(text)] {
		return 0, 0
	}
	// One that the text begins with is the last that is not greater, or that one begins with it.
	i, found := slices.BinarySearchFunc(w.texts, text, func(whole, text []byte) int {
		compared++
		return bytes.Compare(whole, text)
	})
	if !found {
		i--
	}
	for ; i >= 0; i = w.shorter[i] {
		compared++
		if bytes.HasPrefix(text, w.texts[i]) {
			return len(w.texts[i]), compared
		}
	}
	return 0, compared
}
