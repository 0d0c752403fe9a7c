package document

import (
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Position is the line and column of a field, or of its nearest parent that the
// document has. A field that is missing is reported where it should be.
func (d *Document) Position(path string) (line, column int) {
	if d.root == nil {
		return d.line + 1, 1
	}
	n := find(d.root, fieldpath.Split(path))
	return d.line + n.Line, n.Column
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

// value is the node at the end of a path; nil if the tree has none.
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

// child returns the entry of a mapping or sequence that a part names, and the
// node whose position stands for it.
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

// entry returns a key of a mapping and its value, also one that a merge brings in. No
// key is there twice: decoding refuses a merge that brings one which is there already.
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

// isMerge reports whether the value of a key is merged into its mapping; a text "<<" is none.
func isMerge(key *yamlv3.Node) bool {
	return key.Kind == yamlv3.ScalarNode && key.Value == "<<" && key.ShortTag() == "!!merge"
}

// merged finds a key in what a merge brings: a mapping, or a sequence of them.
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

// keyName is what a key says. An alias says what it stands for.
func keyName(key *yamlv3.Node) string { return resolved(key).Value }

// valueAt follows keys down a tree; an empty node when they do not lead anywhere.
func valueAt(n *yamlv3.Node, keys ...string) *yamlv3.Node {
	if n = value(n, keys); n == nil {
		return &yamlv3.Node{}
	}
	return resolved(n)
}

func scalarAt(n *yamlv3.Node, keys ...string) string { return valueAt(n, keys...).Value }

// Scalar is the text at the end of some keys; empty when they do not lead anywhere.
func (d *Document) Scalar(keys ...string) string { return scalarAt(d.root, keys...) }

// Defines reports whether some keys lead to a value.
func (d *Document) Defines(keys ...string) bool { return valueAt(d.root, keys...).Kind != 0 }
