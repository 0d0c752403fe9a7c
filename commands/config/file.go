package config

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/input"
)

// fileMax is the maximum size of a configuration file in bytes.
const fileMax = 64 << 10

// openNamed opens a file that the user named, even if it belongs to another user.
func openNamed(file string) (*os.File, error) {
	return input.OpenNamed(context.Background(), file)
}

// readFile reads one file. A file that podctl finds by itself must belong to root or the user, and no other user may be
// able to write to it. The same applies to each link on its path. With sudo, the home directory may be another user's,
// and the file names the runtime that root connects to.
func readFile(file string, open func(string) (*os.File, error)) ([]byte, error) {
	f, err := open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	text, err := input.ReadAtMost(f, fileMax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// parse reads a configuration file: a map of flag names and their values. The key of a flag in a section consists of
// the section's name, a dot and the flag's name.
func parse(file string, text []byte, sections Sections) (map[string]Setting, error) {
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
		return nil, yamlError(file, err)
	}
	settings := map[string]Setting{}
	if len(doc.Content) == 0 {
		return settings, nil
	}
	root := doc.Content[0]
	if root.Kind != yamlv3.MappingNode {
		return nil, fmt.Errorf(
			"%s:%d: a configuration is a map of flags and their values, for example `namespace: web`", file, root.Line)
	}
	for key, value := range pairs(root) {
		var err error
		if _, is := sections[key.Value]; is && value.Kind == yamlv3.MappingNode {
			for own, ownValue := range pairs(value) {
				err = cmp.Or(err, take(file, settings, key.Value+".", own, ownValue))
			}
		} else {
			err = take(file, settings, "", key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	return settings, nil
}

// take stores the value of one key.
func take(file string, settings map[string]Setting, prefix string, key, value *yamlv3.Node) error {
	name := prefix + key.Value
	s := Setting{Origin: fmt.Sprintf("%s:%d", file, key.Line), FromFile: true}
	if before, twice := settings[name]; twice {
		return fmt.Errorf("%s: %s is set already at %s", s.Origin, name, before.Origin)
	}
	values := []*yamlv3.Node{value}
	if value.Kind == yamlv3.SequenceNode && prefix != "" {
		s.list, values = []string{}, value.Content
	}
	for _, one := range values {
		if one.Kind != yamlv3.ScalarNode || one.Tag == "!!null" {
			return fmt.Errorf("%s: %s takes one value: a string, a number, true or false", s.Origin, name)
		}
		if s.Value = one.Value; s.list != nil {
			s.list = append(s.list, one.Value)
		}
	}
	settings[name] = s
	return nil
}

// pairs iterates over the keys and values of a map.
func pairs(m *yamlv3.Node) iter.Seq2[*yamlv3.Node, *yamlv3.Node] {
	return func(yield func(key, value *yamlv3.Node) bool) {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if !yield(m.Content[i], m.Content[i+1]) {
				return
			}
		}
	}
}

// yamlError converts an error into the form FILE:LINE: TEXT. It takes only the first line, because the later lines of
// the library's text quote the file.
func yamlError(file string, err error) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		return fmt.Errorf("%s:%s", file, rest)
	}
	return fmt.Errorf("%s: %s", file, text)
}
