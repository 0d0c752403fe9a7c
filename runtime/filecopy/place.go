package filecopy

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// place is where a copy has come to. It holds one name: the path is made when it is shown,
// since the paths of a deep tree would fill the memory.
type place struct {
	parent *place
	name   string
	// depth is how many directories of the copy it lies in.
	depth int
	// in is the directory into which it is copied; nil in an archive.
	in *os.File
}

func (p *place) below(name string, in *os.File) *place {
	return &place{parent: p, name: name, depth: p.depth + 1, in: in}
}

// path is the path in an archive.
func (p *place) path() string {
	if p.parent == nil {
		return p.name
	}
	return p.parent.path() + "/" + p.name
}

// Of a path that is longer than this, in bytes, only the first element and the last ones are
// shown.
const (
	shownMax  = 1024
	lastShown = 2
)

// String is the path for people, on one line.
func (p *place) String() string {
	var names []string
	length := 0
	for at := p; at != nil; at = at.parent {
		names = append(names, plain(at.name))
		length += len(names[len(names)-1]) + 1
	}
	slices.Reverse(names)
	if length > shownMax && len(names) > 1+lastShown {
		names = slices.Concat(names[:1], []string{"…"}, names[len(names)-lastShown:])
	}
	return strings.Join(names, "/")
}

// wrap adds to an error what was done where; no error stays none.
func (p *place) wrap(action string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", action, p, err)
}

// plain is a name as it may stand in a line: quoted if it would begin another line or move the
// cursor, or is no text.
func plain(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.ContainsFunc(name, odd) || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	return name
}
