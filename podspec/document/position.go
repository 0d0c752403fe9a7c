package document

import (
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Position returns the line and column of a field, or of its nearest existing parent, where a missing field should be.
func (d *Document) Position(path string) (line, column int) {
	if d.root == nil {
		return d.line + 1, 1
	}
	n := find(d.root, fieldpath.Split(path))
	return d.line + n.Line, n.Column
}

// find follows the parts of a path as far as the tree has them. For a key it returns the key's node, so the position is
// that of the name.
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

// value returns the node at a path, or nil if there is none.
func value(n *yamlv3.Node, parts []string) *yamlv3.Node {
	for _, part := range parts {
		if _, n = child(resolved(n), part); n == nil {
			return nil
		}
	}
	return n
}

func resolved(n *yamlv3.Node) *yamlv3.Node {
	for n.Kind == yamlv3.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// child returns the entry of a mapping or sequence, and the node with its position.
func child(n *yamlv3.Node, part string) (at, value *yamlv3.Node) {
	switch n.Kind {
	case yamlv3.MappingNode:
		return entry(n, part)
	case yamlv3.SequenceNode:
		i, err := strconv.Atoi(part)
		if err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
	return nil, nil
}

// entry returns a key of a mapping and its value, also from a merge. Keys are unique, because decoding refuses a merge
// that repeats an existing key.
func entry(n *yamlv3.Node, name string) (key, value *yamlv3.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value = n.Content[i], n.Content[i+1]
		if isMerge(key) {
			if key, value = merged(value, name); value != nil {
				return key, value
			}
		} else if keyName(key) == name {
			return key, value
		}
	}
	return nil, nil
}

// isMerge reports whether the value of a key is merged into its mapping. A quoted "<<" is an ordinary key.
func isMerge(key *yamlv3.Node) bool {
	return key.Kind == yamlv3.ScalarNode && key.Value == "<<" && key.ShortTag() == "!!merge"
}

// merged finds a key in the value of a merge: a mapping, or a sequence of mappings.
func merged(n *yamlv3.Node, name string) (key, value *yamlv3.Node) {
	n = resolved(n)
	if n.Kind == yamlv3.MappingNode {
		return entry(n, name)
	}
	for _, one := range n.Content {
		if key, value = entry(resolved(one), name); value != nil {
			return key, value
		}
	}
	return nil, nil
}

// keyName returns the text of a key, with an alias resolved.
func keyName(key *yamlv3.Node) string { return resolved(key).Value }

// valueAt returns the node at some keys, or an empty node if there is none.
func valueAt(n *yamlv3.Node, keys ...string) *yamlv3.Node {
	if n = value(n, keys); n == nil {
		return &yamlv3.Node{}
	}
	return resolved(n)
}

func scalarAt(n *yamlv3.Node, keys ...string) string { return valueAt(n, keys...).Value }

// Scalar returns the text at some keys, or an empty string if there is none.
func (d *Document) Scalar(keys ...string) string { return scalarAt(d.root, keys...) }

// Defines reports whether some keys lead to a value.
func (d *Document) Defines(keys ...string) bool { return valueAt(d.root, keys...).Kind != 0 }
