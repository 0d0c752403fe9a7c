//go:build kustomize

package kustomize

import (
	"bytes"
	"errors"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/document"
)

// checkExtent refuses YAML whose aliases stand for more than a manifest may have: the library replaces them all. What is no
// YAML can be data.
func checkExtent(text []byte) error {
	if !bytes.ContainsRune(text, '&') || !bytes.ContainsRune(text, '*') {
		return nil
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	e := &extent{sizes: map[*yamlv3.Node]int64{}}
	total := int64(0)
	for {
		var root yamlv3.Node
		if decoder.Decode(&root) != nil {
			return nil //nolint:nilerr // the library says what is wrong with it
		}
		if total += e.of(&root); total > document.MaxValues {
			return fmt.Errorf("holds more than %d values once its aliases are replaced by what they stand for", document.MaxValues)
		}
		if e.circular {
			return errors.New("has an alias that stands for something that contains it")
		}
	}
}

// extent counts the values of nodes, aliases replaced.
type extent struct {
	sizes    map[*yamlv3.Node]int64
	circular bool
}

// open is the size of a node while it is being counted.
const open = -1

func (e *extent) of(n *yamlv3.Node) int64 {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	size, known := e.sizes[n]
	switch {
	case size == open:
		e.circular = true
		return 0
	case known:
		return size
	}
	e.sizes[n] = open
	size = 1
	for _, child := range n.Content {
		// Sums may not overflow: all that counts is that they are too large.
		size = min(size+e.of(child), document.MaxValues+1)
	}
	e.sizes[n] = size
	return size
}
