package podspec

import (
	"bytes"
	"fmt"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Pin is the manifest as it was written, with its comments and without defaults,
// and with other names for its images. Secrets do not belong on a screen: they
// are left out, and named.
func (m *Manifest) Pin(pins map[string]string) (text []byte, left []string, err error) {
	p := &pinning{pins: pins}
	var b bytes.Buffer
	for _, d := range m.documents {
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
	return b.Bytes(), p.left, p.check(b.Bytes())
}

// pinning gives the images of one manifest other names.
type pinning struct {
	pins map[string]string
	left []string
}

// document pins one object, or those of a List; false when it is left out.
func (p *pinning) document(n *yamlv3.Node) (*yamlv3.Node, bool) {
	switch scalarAt(n, "kind") {
	case kindSecret:
		p.left = append(p.left, fmt.Sprintf("%s %s", kindSecret, scalarAt(n, "metadata", "name")))
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

func (p *pinning) pod(n *yamlv3.Node) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range valueAt(n, "spec", list).Content {
			p.rename(resolved(c), "image")
		}
	}
	for _, vol := range valueAt(n, "spec", "volumes").Content {
		p.rename(valueAt(resolved(vol), "image"), "reference")
	}
}

// rename gives the image that a key names another name. An alias is replaced, so
// that what it stands for keeps its meaning elsewhere.
func (p *pinning) rename(n *yamlv3.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1]
		pin := p.pins[resolved(value).Value]
		if keyName(n.Content[i]) != key || pin == "" {
			continue
		}
		n.Content[i+1] = &yamlv3.Node{
			Kind: yamlv3.ScalarNode, Tag: "!!str", Value: pin, Style: value.Style, Anchor: value.Anchor, LineComment: value.LineComment,
		}
	}
}

// check reads what was made: an image that a YAML merge brings in has not been
// renamed, and nobody may believe that it was; and an alias may have lost what it
// stands for with a Secret.
func (p *pinning) check(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	a := &assembly{}
	a.addSource(source{name: "-", text: text})
	m := a.manifest()
	if err := m.Err(); err != nil {
		return fmt.Errorf("what pinning makes of it is refused, write out what it has by aliases (*) and pin again: %w", err)
	}
	for _, d := range m.Pods {
		for _, name := range ImageNames(d.Pod) {
			if pin, known := p.pins[name]; known && pin != name {
				return fmt.Errorf("pod %s/%s: the image %s comes in by a YAML merge (<<): write it out, and pin again", d.Pod.Namespace, d.Pod.Name, name)
			}
		}
	}
	return nil
}
