package load

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
)

// WithEphemeral returns d with an additional ephemeral container, with all defaults, and validated as a whole.
func WithEphemeral(d *podspec.Desired, c *v1.EphemeralContainer) (*podspec.Desired, error) {
	pod := d.Pod.DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, *c)
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("adding container %s: %w", c.Name, err)
	}
	m := Parse(input.Source{Name: "-", Text: []byte(forYAML(string(text)))})
	if err = m.Err(); err != nil {
		return nil, fmt.Errorf("adding container %s: %w", c.Name, err)
	}
	with := m.Pods[0]
	with.Objects, with.Source, with.WrittenUID = d.Objects, d.Source, d.WrittenUID
	return with, nil
}

// forYAML escapes characters that JSON allows unescaped, but YAML does not.
func forYAML(json string) string {
	var b strings.Builder
	for _, r := range json {
		if unicode.IsControl(r) || r == '\uFEFF' || r == '\uFFFE' || r == '\uFFFF' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
