package podspec

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// document is one YAML or JSON document of a source.
type document struct {
	file string
	// line is the number of lines before the document in its source.
	line int
	text []byte
	// json is the document as JSON, root its tree of positions.
	json []byte
	root *yamlv3.Node
	// top is the whole document, with the comments before and after it.
	top *yamlv3.Node
	// values counts what the document holds, aliases replaced.
	values int64
	// prefix is the path inside the document that this part of it has: the item
	// of a List.
	prefix string
	faults faults
}

// splitDocuments cuts a source at its "---" lines. Documents that hold only
// comments and blanks are left out. It stops once there are more than anybody reads.
func splitDocuments(s source) []*document {
	var docs []*document
	var current bytes.Buffer
	start, line := 0, 0
	flush := func() {
		if hasContent(current.Bytes()) {
			docs = append(docs, &document{file: s.name, line: start, text: bytes.Clone(current.Bytes())})
		}
		current.Reset()
		start = line
	}
	for text := range bytes.Lines(s.text) {
		line++
		if isSeparator(text) {
			if flush(); len(docs) > maxDocuments {
				return docs
			}
			continue
		}
		current.Write(text)
	}
	flush()
	return docs
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(bytes.TrimSpace(rest)) == 0 || bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte("#")))
}

func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) > 0 && trimmed[0] != '#' && !bytes.Equal(trimmed, []byte("...")) {
			return true
		}
	}
	return false
}

// parse turns the document into JSON and into a tree of positions. A document
// that is no YAML, is too large, or names a key twice, yields problems instead.
func (d *document) parse() []Problem {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.text, &root); err != nil {
		return []Problem{d.syntaxProblem(err)}
	}
	if len(root.Content) == 0 || root.Content[0].Kind != yamlv3.MappingNode {
		return []Problem{{Class: ClassInvalid, File: d.file, Line: d.line + 1, Column: 1, Detail: "is not a Kubernetes object: apiVersion and kind are expected"}}
	}
	var problems []Problem
	if d.values, problems = d.bounded(root.Content[0]); len(problems) > 0 {
		return problems
	}
	d.top, d.root = &root, root.Content[0]
	if twice := d.duplicateKeys(d.root, "", nil); len(twice) > 0 {
		return first(twice)
	}
	json, err := yaml.YAMLToJSONStrict(d.text)
	if err != nil {
		return []Problem{d.syntaxProblem(err)}
	}
	d.json = json
	return nil
}

// syntaxProblem moves the line a YAML error names to its place in the source.
func (d *document) syntaxProblem(err error) Problem {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "error converting YAML to JSON: ", ""), "yaml: ")
	p := Problem{Class: ClassInvalid, File: d.file, Line: d.line + 1, Column: 1}
	if m := regexp.MustCompile(`line (\d+): `).FindStringSubmatch(text); m != nil {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			p.Line = d.line + n
			text = strings.Replace(text, m[0], "", 1)
		}
	}
	p.Detail = "is not valid YAML: " + text
	return p
}

// duplicateKeys finds keys that a mapping names twice.
func (d *document) duplicateKeys(n *yamlv3.Node, path string, found []Problem) []Problem {
	switch n.Kind {
	case yamlv3.MappingNode:
		seen := map[string]*yamlv3.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, name := n.Content[i], keyName(n.Content[i])
			at := joinPath(path, name)
			if first := seen[name]; first != nil {
				found = append(found, d.problem(key, at, fmt.Sprintf("is given twice, first in line %d", d.line+first.Line)))
			}
			seen[name] = key
			found = d.duplicateKeys(n.Content[i+1], at, found)
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			found = d.duplicateKeys(item, indexed(path, i), found)
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
	return found
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d *document) problem(n *yamlv3.Node, path, detail string) Problem {
	return Problem{Class: ClassInvalid, File: d.file, Line: d.line + n.Line, Column: n.Column, Path: path, Detail: detail}
}

// at builds a problem at a field path.
func (d *document) at(class Class, path, detail string) Problem {
	p := Problem{Class: class, File: d.file, Path: path, Detail: detail}
	p.Line, p.Column = d.position(path)
	return p
}

// item is one entry of a List, with the positions it has in the list.
func (d *document) item(i int, json []byte) *document {
	node := find(d.root, splitPath(indexed("items", i)))
	return &document{file: d.file, line: d.line, json: json, root: node, prefix: indexed("items", i)}
}
