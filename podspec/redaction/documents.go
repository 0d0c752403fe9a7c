package redaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// json takes documents apart, one after the other.
func (p *parts) json(key, text string, nesting int) bool {
	if text[0] != '{' && text[0] != '[' {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var documents []any
	for {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false
		}
		documents = append(documents, document)
	}
	p.walk(key, documents, nesting)
	return true
}

// yaml takes documents of more than one line apart.
func (p *parts) yaml(key, text string, nesting int) bool {
	if !strings.Contains(text, "\n") || !strings.Contains(text, ":") && !strings.Contains(text, "- ") {
		return false
	}
	documents := yamlDocuments(text)
	for _, document := range documents {
		p.node(key, document, nesting)
	}
	if len(documents) == 0 {
		return false
	}
	// What is a comment for YAML may be none for who reads it.
	for line := range strings.Lines(text) {
		if name, value, ok := setting(line); ok {
			p.leaf(name, value)
		}
	}
	return true
}

// yamlDocuments are the documents in a text; none when one of them is no list and no mapping.
func yamlDocuments(text string) []*yaml.Node {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil || len(document.Content) != 1 {
			return nil
		}
		switch root := document.Content[0]; {
		case root.Kind == yaml.MappingNode || root.Kind == yaml.SequenceNode:
			documents = append(documents, root)
		case root.ShortTag() != "!!null":
			return nil
		}
	}
}

// node adds the leaves of a YAML document. Aliases are not followed: what they stand for is
// in the document, and written out they may be far larger than it.
func (p *parts) node(key string, n *yaml.Node, nesting int) {
	switch n.Kind {
	case yaml.DocumentNode: // Its content is walked.
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i]
			if name.Anchor != "" {
				p.node("", name, nesting)
			}
			p.node(name.Value, n.Content[i+1], nesting)
		}
	case yaml.SequenceNode:
		for _, inner := range n.Content {
			p.node(key, inner, nesting)
		}
	case yaml.AliasNode:
		// What is no secret behind the key of its anchor may be one behind this.
		if n.Alias.Kind == yaml.ScalarNode && len(n.Alias.Value) <= longestKey {
			p.leaf(key, n.Alias.Value)
		}
	case yaml.ScalarNode:
		p.scalar(key, n, nesting)
	}
}

// scalar adds a leaf of a YAML document: a number as it is written and as it is printed.
func (p *parts) scalar(key string, n *yaml.Node, nesting int) {
	switch n.ShortTag() {
	case "!!null", "!!bool":
	case "!!int", "!!float":
		p.leaf(key, n.Value)
		var number any
		if n.Decode(&number) == nil {
			p.leaf(key, fmt.Sprint(number))
		}
	default:
		p.add(key, n.Value, nesting-1)
	}
}

// walk adds the leaves of a JSON document.
func (p *parts) walk(key string, value any, nesting int) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p.walk(name, v[name], nesting)
		}
	case []any:
		for _, inner := range v {
			p.walk(key, inner, nesting)
		}
	case string:
		p.add(key, v, nesting-1)
	case nil, bool:
	default:
		p.leaf(key, fmt.Sprint(v))
	}
}
