package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Document is one YAML or JSON document of a source.
type Document struct {
	File string
	// line is the number of lines before the document in its source.
	line int
	text []byte
	// JSON is the document as JSON. root is its tree of positions.
	JSON []byte
	root *yamlv3.Node
	// top is the whole document with the comments before and after it.
	top *yamlv3.Node
	// Values is the number of values with aliases expanded.
	Values int64
	// Kind is the kind of the object, or empty if it is not known yet.
	Kind string
	// prefix is the path of this part in the whole document; empty for a whole document.
	prefix string
}

// Parse converts the document to JSON and to a tree of positions. It returns problems if the document is not YAML, is
// too large, or has duplicate keys.
func (d *Document) Parse() []Problem {
	if problems := d.unsplit(); len(problems) > 0 {
		return problems
	}
	var root yamlv3.Node
	decoder := yamlv3.NewDecoder(bytes.NewReader(d.text))
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return []Problem{d.syntaxProblem(err)}
	}
	if len(root.Content) == 0 || root.Content[0].Kind != yamlv3.MappingNode {
		return []Problem{d.Whole("is not a Kubernetes object: apiVersion and kind are expected")}
	}
	d.top, d.root = &root, root.Content[0]
	var problems []Problem
	if d.Values, problems = d.bounded(d.root); len(problems) > 0 {
		return problems
	}
	if problems = d.second(decoder); len(problems) > 0 {
		return problems
	}
	if problems = d.duplicateKeys(d.root, "", nil); len(problems) > 0 {
		return first(problems)
	}
	json, err := yaml.YAMLToJSONStrict(d.text)
	if err != nil {
		return []Problem{d.conversionProblem(err)}
	}
	d.JSON = json
	return nil
}

// second refuses a second object without a marker before it, such as a second JSON object, because it would not be
// read.
func (d *Document) second(decoder *yamlv3.Decoder) []Problem {
	const detail = `begins a second object: put a line with "---" before it`
	var next yamlv3.Node
	switch err := decoder.Decode(&next); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return []Problem{d.problem(&next, "", detail)}
	default:
		p := d.syntaxProblem(err)
		if strings.Contains(err.Error(), "<document start>") {
			p.Detail = detail
		}
		return []Problem{p}
	}
}

// duplicateKeys returns the keys that occur twice in a mapping.
func (d *Document) duplicateKeys(n *yamlv3.Node, path string, found []Problem) []Problem {
	switch n.Kind {
	case yamlv3.MappingNode:
		seen := map[string]*yamlv3.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, name := n.Content[i], keyName(n.Content[i])
			at := fieldpath.Join(path, name)
			if first := seen[name]; first != nil {
				detail := fmt.Sprintf("is given twice, first in line %d", d.line+first.Line)
				found = append(found, d.problem(key, d.shownKey(path, name), detail))
			}
			seen[name] = key
			found = d.duplicateKeys(n.Content[i+1], at, found)
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			found = d.duplicateKeys(item, fieldpath.Index(path, i), found)
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
	return found
}

func (d *Document) problem(n *yamlv3.Node, path, detail string) Problem {
	return Problem{
		Class:  ClassInvalid,
		File:   d.File,
		Line:   d.line + n.Line,
		Column: n.Column,
		Path:   d.shown(path),
		Detail: detail,
	}
}

// Whole returns a problem with the document as a whole.
func (d *Document) Whole(detail string) Problem {
	return Problem{Class: ClassInvalid, File: d.File, Line: d.line + 1, Column: 1, Detail: detail}
}

// At returns a problem with the field at a path.
func (d *Document) At(class Class, path, detail string) Problem {
	p := Problem{Class: class, File: d.File, Path: d.Full(d.shown(path)), Detail: detail}
	p.Line, p.Column = d.Position(path)
	return p
}

// AtValue returns a problem with the value at a path. For a text on lines of its own the position is that of the text,
// which may be wrong itself. For other values it is that of the key.
func (d *Document) AtValue(class Class, path, detail string) Problem {
	p := d.At(class, path, detail)
	if d.root == nil {
		return p
	}
	if n := value(d.root, fieldpath.Split(path)); n != nil && n.Kind == yamlv3.ScalarNode && d.line+n.Line > p.Line {
		p.Line, p.Column = d.line+n.Line, n.Column
	}
	return p
}

// Note returns a note for the field at a path. pod may be empty.
func (d *Document) Note(pod, path, detail string) Note {
	line, column := d.Position(path)
	return Note{Pod: pod, File: d.File, Line: line, Column: column, Path: d.Full(path), Detail: detail}
}

// Part returns the object at a field of a document. Its paths begin at that field. Its problems and notes have the
// paths of the whole document.
func (d *Document) Part(path string, json []byte) *Document {
	part := &Document{
		File:   d.File,
		line:   d.line,
		JSON:   json,
		Kind:   d.Kind,
		prefix: d.Full(path),
		root:   value(d.root, fieldpath.Split(path)),
	}
	if part.root == nil {
		part.root = find(d.root, fieldpath.Split(path))
	}
	return part
}

// Full returns a path in the whole document.
func (d *Document) Full(path string) string {
	if d.prefix == "" || path == "" {
		return d.prefix + path
	}
	return d.prefix + "." + path
}

// Item returns one item of a List, with its positions in the list.
func (d *Document) Item(i int, json []byte) *Document {
	node := find(d.root, fieldpath.Split(fieldpath.Index("items", i)))
	return &Document{File: d.File, line: d.line, JSON: json, root: node}
}
