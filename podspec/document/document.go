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
	// JSON is the document as JSON, root its tree of positions.
	JSON []byte
	root *yamlv3.Node
	// top is the whole document, with the comments before and after it.
	top *yamlv3.Node
	// Values counts what the document holds, aliases replaced.
	Values int64
	// Kind is the kind of object that the document was found to be; empty until then.
	Kind string
	// prefix is what paths begin with in the whole document, when this is a part of it.
	prefix string
}

// Parse turns the document into JSON and into a tree of positions. A document
// that is no YAML, is too large, or names a key twice, yields problems instead.
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

// second refuses an object that follows another one without a marker between them, such as a
// second JSON object: it would not be read.
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

// duplicateKeys finds keys that a mapping names twice.
func (d *Document) duplicateKeys(n *yamlv3.Node, path string, found []Problem) []Problem {
	switch n.Kind {
	case yamlv3.MappingNode:
		seen := map[string]*yamlv3.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, name := n.Content[i], keyName(n.Content[i])
			at := fieldpath.Join(path, name)
			if first := seen[name]; first != nil {
				found = append(found, d.problem(key, d.shownKey(path, name), fmt.Sprintf("is given twice, first in line %d", d.line+first.Line)))
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
	return Problem{Class: ClassInvalid, File: d.File, Line: d.line + n.Line, Column: n.Column, Path: d.shown(path), Detail: detail}
}

// Whole builds a problem of the document as a whole.
func (d *Document) Whole(detail string) Problem {
	return Problem{Class: ClassInvalid, File: d.File, Line: d.line + 1, Column: 1, Detail: detail}
}

// At builds a problem at a field path.
func (d *Document) At(class Class, path, detail string) Problem {
	p := Problem{Class: class, File: d.File, Path: d.Full(d.shown(path)), Detail: detail}
	p.Line, p.Column = d.Position(path)
	return p
}

// AtValue builds a problem of the value at a field path. A text over lines of its own has its
// place, as it may be what is wrong; any other value has that of its key.
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

// Note builds a note at a field path, about a pod or about none.
func (d *Document) Note(pod, path, detail string) Note {
	line, column := d.Position(path)
	return Note{Pod: pod, File: d.File, Line: line, Column: column, Path: d.Full(path), Detail: detail}
}

// Part is the object at a field of a document, in which paths begin at that field. Problems and notes of it have the
// paths of the whole document.
func (d *Document) Part(path string, json []byte) *Document {
	part := &Document{File: d.File, line: d.line, JSON: json, Kind: d.Kind, prefix: d.Full(path), root: value(d.root, fieldpath.Split(path))}
	if part.root == nil {
		part.root = find(d.root, fieldpath.Split(path))
	}
	return part
}

// Full is a path in the whole document.
func (d *Document) Full(path string) string {
	if d.prefix == "" || path == "" {
		return d.prefix + path
	}
	return d.prefix + "." + path
}

// Item is one entry of a List, with the positions it has in the list.
func (d *Document) Item(i int, json []byte) *Document {
	node := find(d.root, fieldpath.Split(fieldpath.Index("items", i)))
	return &Document{File: d.File, line: d.line, JSON: json, root: node}
}
