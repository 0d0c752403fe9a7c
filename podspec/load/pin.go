package load

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

// Pin returns the manifest as written, with its comments and without defaults, but with other names for its images. It
// omits Secrets so that they are not printed, and returns their names in left.
func (m *Manifest) Pin(pins map[string]string) (text []byte, left []string, err error) {
	if text, left, err = document.Rename(m.documents, pins); err != nil {
		return nil, nil, err
	}
	return text, left, checkPinned(text, pins)
}

// checkPinned loads the pinned manifest. It finds an image from a YAML merge, which is not renamed, and an alias whose
// anchor was in an omitted Secret.
func checkPinned(text []byte, pins map[string]string) error {
	if len(text) == 0 {
		return nil
	}
	m := Parse(input.Source{Name: "-", Text: text})
	if err := m.Err(); err != nil {
		return fmt.Errorf("the manifest is not valid once its images are pinned; "+
			"write out its aliases (*) and pin again: %w", err)
	}
	for _, d := range m.Pods {
		for _, name := range podspec.ImageNames(d.Pod) {
			if pin, known := pins[name]; known && pin != name {
				return fmt.Errorf(
					"pod %s/%s: the image %s comes from a YAML merge (<<): write it out, and pin again",
					d.Pod.Namespace, d.Pod.Name, name)
			}
		}
	}
	return nil
}
