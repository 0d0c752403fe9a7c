package document

import (
	"bytes"
	"fmt"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Rename returns documents as written, including comments, but with other names for images of pods. It omits Secrets so
// that they are not printed, and returns their names in left.
func Rename(documents []*Document, images map[string]string) (text []byte, left []string, err error) {
	p := &renaming{images: images}
	var b bytes.Buffer
	for _, d := range documents {
		top, keep := p.document(d.top.Content[0])
		if !keep {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("---\n")
		}
		d.top.Content[0] = top
		encoder := yamlv3.NewEncoder(&b)
		encoder.SetIndent(2)
		if err := encoder.Encode(d.top); err != nil {
			return nil, nil, fmt.Errorf("writing the manifest: %w", err)
		}
	}
	return b.Bytes(), p.left, nil
}

// renaming replaces the names of images.
type renaming struct {
	images map[string]string
	left   []string
}

// document renames the images of one object, or of the items of a List. It returns false if the object is omitted.
func (p *renaming) document(n *yamlv3.Node) (*yamlv3.Node, bool) {
	switch scalarAt(n, "kind") {
	case "Secret":
		p.left = append(p.left, "Secret "+scalarAt(n, "metadata", "name"))
		return nil, false
	case "Pod":
		p.pod(n)
	case "List", "PodList":
		items := valueAt(n, "items")
		items.Content = slices.DeleteFunc(items.Content, func(item *yamlv3.Node) bool {
			_, keep := p.document(item)
			return !keep
		})
	}
	return n, true
}

func (p *renaming) pod(n *yamlv3.Node) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range valueAt(n, "spec", list).Content {
			p.rename(resolved(c), "image")
		}
	}
	for _, vol := range valueAt(n, "spec", "volumes").Content {
		p.rename(valueAt(resolved(vol), "image"), "reference")
	}
}

// rename replaces the image at a key. It replaces an alias instead of its target, so that other aliases keep their
// meaning.
func (p *renaming) rename(n *yamlv3.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1]
		renamed := p.images[resolved(value).Value]
		if keyName(n.Content[i]) != key || renamed == "" {
			continue
		}
		n.Content[i+1] = &yamlv3.Node{
			Kind:        yamlv3.ScalarNode,
			Tag:         "!!str",
			Value:       renamed,
			Style:       value.Style,
			Anchor:      value.Anchor,
			LineComment: value.LineComment,
		}
	}
}
