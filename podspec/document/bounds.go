package document

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/input"
)

// Limits for manifests, because a few bytes of YAML can expand to gigabytes. They are far above the needs of one
// machine, and far below what harms it.
const (
	// maxMarks limits the lines, commas and brackets of one source before it is parsed. Each can be a value, and a
	// value takes about two hundred bytes.
	maxMarks = 500_000
	// MaxValues limits the values of all documents with aliases expanded. Each may become a container of a kilobyte.
	MaxValues = 100_000
	// MaxDocuments limits the documents of all sources, including items of Lists.
	MaxDocuments = 1_000
	// maxDepth limits the nesting of values. A Pod needs fifteen levels.
	maxDepth = 100
	// MaxProblems limits the listed problems of one document.
	MaxProblems = 100
)

// overfullLine returns the line in which a source exceeds the limit of marks, or 0. It also counts marks inside
// strings, because excluding them would need the parser that this limit protects.
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

// extent is the size of a YAML tree with aliases expanded.
type extent struct {
	values, bytes int64
	// open is set while the node is being measured. A node found open contains itself.
	open bool
}

// measurer measures a document before it is decoded.
type measurer struct {
	d    *Document
	seen map[*yamlv3.Node]extent
}

// bounded returns the number of values of a document, or problems if it would become too large or too deep.
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
			fmt.Sprintf("is larger than %d bytes once its aliases are expanded", input.DefaultMaxBytes))}
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
		// Cap the sums to avoid an overflow; the exact size does not matter.
		size.values = min(size.values+part.values, MaxValues+1)
		size.bytes = min(size.bytes+part.bytes, input.DefaultMaxBytes+1)
	}
	if n.Anchor != "" {
		m.seen[n] = size
	}
	return size, nil
}

// alias returns the size of the alias's target, which is measured once. The target precedes the alias, so only parents
// of the alias can still be open.
func (m *measurer) alias(n *yamlv3.Node, depth int) (extent, *Problem) {
	size, known := m.seen[n.Alias]
	if size.open || n.Alias == nil {
		p := m.d.problem(n, "", "is not valid YAML: an alias refers to a value that contains it")
		return extent{}, &p
	}
	if known {
		return size, nil
	}
	return m.measure(n.Alias, depth)
}
