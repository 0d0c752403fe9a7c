package document

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/input"
)

// What is read of manifests is bounded, since a few bytes of YAML can stand for
// gigabytes. The bounds are far above what one machine can run, and far below what
// hurts it.
const (
	// maxMarks bounds the lines, commas and brackets of one source before it is parsed:
	// each can be a value, and a value costs some two hundred bytes.
	maxMarks = 500_000
	// MaxValues bounds the values of all documents, aliases replaced: each may become a
	// container of a kilobyte.
	MaxValues = 100_000
	// MaxDocuments bounds the documents of all sources, items of Lists included.
	MaxDocuments = 1_000
	// maxDepth bounds how deep values are nested. A Pod needs fifteen levels.
	maxDepth = 100
	// MaxProblems bounds the problems of one document that are listed.
	MaxProblems = 100
)

// overfullLine is the line in which a source has its mark too many; 0 when it has none.
// What is inside of texts is counted too: telling it apart would take the parser that
// this protects.
func overfullLine(text []byte, limit int) int {
	for i, c := range text {
		switch c {
		case '\n', ',', '[', '{':
			limit--
		case ' ', '\t':
			// "- - - a", "? ? a" and "a: b" put several values into a line.
			if i > 0 && (text[i-1] == '-' || text[i-1] == '?' || text[i-1] == ':') {
				limit--
			}
		}
		if limit < 0 {
			return 1 + bytes.Count(text[:i], []byte{'\n'})
		}
	}
	return 0
}

// extent is how much a tree of YAML stands for once its aliases are replaced.
type extent struct {
	values, bytes int64
	// open is set while the node is being measured: a node found open would contain itself.
	open bool
}

// measurer measures a document before anything is made of it.
type measurer struct {
	d    *Document
	seen map[*yamlv3.Node]extent
}

// bounded yields the problems of a document that would become too large or too deep.
func (d *Document) bounded(root *yamlv3.Node) (int64, []Problem) {
	m := &measurer{d: d, seen: map[*yamlv3.Node]extent{}}
	size, problem := m.measure(root, 0)
	switch {
	case problem != nil:
		return 0, []Problem{*problem}
	case size.values > MaxValues:
		return 0, []Problem{d.problem(root, "", fmt.Sprintf("holds more than %d values", MaxValues))}
	case size.bytes > input.DefaultMaxBytes:
		return 0, []Problem{d.problem(root, "",
			fmt.Sprintf("is larger than %d bytes once its aliases are replaced by what they stand for", input.DefaultMaxBytes))}
	}
	return size.values, nil
}

func (m *measurer) measure(n *yamlv3.Node, depth int) (extent, *Problem) {
	if depth > maxDepth {
		p := m.d.problem(n, "", fmt.Sprintf("is nested deeper than %d levels", maxDepth))
		return extent{}, &p
	}
	if n.Kind == yamlv3.AliasNode {
		return m.alias(n, depth)
	}
	if n.Anchor != "" {
		m.seen[n] = extent{open: true}
	}
	size := extent{values: 1, bytes: int64(len(n.Value))}
	for _, child := range n.Content {
		part, problem := m.measure(child, depth+1)
		if problem != nil {
			return extent{}, problem
		}
		// Sums may not overflow: all that counts is that they are too large.
		size.values = min(size.values+part.values, MaxValues+1)
		size.bytes = min(size.bytes+part.bytes, input.DefaultMaxBytes+1)
	}
	if n.Anchor != "" {
		m.seen[n] = size
	}
	return size, nil
}

// alias is measured as what it stands for, which is measured once. It stands for
// something before it, so only its own parents can still be open.
func (m *measurer) alias(n *yamlv3.Node, depth int) (extent, *Problem) {
	size, known := m.seen[n.Alias]
	if size.open || n.Alias == nil {
		p := m.d.problem(n, "", "is not valid YAML: an alias stands for something that contains it")
		return extent{}, &p
	}
	if known {
		return size, nil
	}
	return m.measure(n.Alias, depth)
}
