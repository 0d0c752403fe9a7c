package podspec

import (
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// position is the line and column of a field, or of its nearest parent that the
// document has. A field that is missing is reported where it should be.
func (d *document) position(path string) (line, column int) {
	if d.root == nil {
		return d.line + 1, 1
	}
	n := find(d.root, splitPath(path))
	return d.line + n.Line, n.Column
}

// splitPath cuts a field path as the API machinery writes it into its parts:
// spec.containers[0].resources.limits[cpu] has the parts spec, containers, 0,
// resources, limits, cpu. A bracket may hold dots.
func splitPath(path string) []string {
	var parts []string
	for path != "" {
		switch i := strings.IndexAny(path, ".["); {
		case i < 0:
			return append(parts, path)
		case path[i] == '.':
			parts = appendPart(parts, path[:i])
			path = path[i+1:]
		default:
			parts = appendPart(parts, path[:i])
			end := strings.IndexByte(path[i:], ']')
			if end < 0 {
				return append(parts, path[i+1:])
			}
			parts = append(parts, path[i+1:i+end])
			path = strings.TrimPrefix(path[i+end+1:], ".")
		}
	}
	return parts
}

func appendPart(parts []string, part string) []string {
	if part == "" {
		return parts
	}
	return append(parts, part)
}

// find follows the parts of a path down the tree, as far as the tree goes. For a
// key it returns the key's node, so that the position is that of the name.
func find(n *yamlv3.Node, parts []string) *yamlv3.Node {
	at := n
	for _, part := range parts {
		n = resolved(n)
		key, value := child(n, part)
		if value == nil {
			return at
		}
		at, n = key, value
	}
	return at
}

func resolved(n *yamlv3.Node) *yamlv3.Node {
	for n.Kind == yamlv3.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// child returns the entry of a mapping or sequence that a part names, and the
// node whose position stands for it.
func child(n *yamlv3.Node, part string) (at, value *yamlv3.Node) {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yamlv3.SequenceNode:
		i, err := strconv.Atoi(part)
		if err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
	return nil, nil
}

// walkLeaves calls visit for every value of a tree that has no parts of its own,
// empty maps and lists included.
func walkLeaves(n *yamlv3.Node, path string, visit func(path string, n *yamlv3.Node)) {
	n = resolved(n)
	if len(n.Content) == 0 {
		if n.Tag != "!!null" {
			visit(path, n)
		}
		return
	}
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			walkLeaves(n.Content[i+1], joinPath(path, n.Content[i].Value), visit)
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			walkLeaves(item, indexed(path, i), visit)
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
}
