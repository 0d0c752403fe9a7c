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

// place is the current position of a copy. It holds only one name and builds the path when it is shown, because the
// paths of a deep tree would fill the memory.
type place struct {
	parent *place
	name   string
	// depth is the number of directories of the copy above it.
	depth int
	// in is the target directory; nil in an archive.
	in *os.File
}

func (p *place) below(name string, in *os.File) *place {
	return &place{parent: p, name: name, depth: p.depth + 1, in: in}
}

// path returns the path in an archive.
func (p *place) path() string {
	if p.parent == nil {
		return p.name
	}
	return p.parent.path() + "/" + p.name
}

// A path with more than shownMax bytes is shown with its first element and its last ones only.
const (
	shownMax  = 1024
	lastShown = 2
)

// String returns the path for users, on one line.
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

// wrap adds an action and the path to an error. It returns nil for nil.
func (p *place) wrap(action string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", action, p, err)
}

// plain returns a name for use in a line. It quotes a name that is not UTF-8 or that has unprintable characters.
func plain(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.ContainsFunc(name, odd) || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	return name
}
