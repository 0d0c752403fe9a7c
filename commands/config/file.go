package config

import (
	"fmt"
	"os"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec/input"
)

// fileMax is how many bytes a configuration file may have: it is a few lines.
const fileMax = 64 << 10

// openNamed opens a file that the user named, also one of another user. It does not block on a
// pipe that has no writer.
func openNamed(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// readFile reads one file. One that podctl finds by itself is only believed when
// it, and each link on the way to it, is root's or the user's own, and nobody else can write
// to it: with sudo the home directory may be another user's, and the file says which runtime
// root talks to.
func readFile(file string, open func(string) (*os.File, error)) ([]byte, error) {
	f, err := open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	text, err := input.ReadAtMost(f, fileMax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// parse reads a configuration file: a map of flag names and their values.
func parse(file string, text []byte) (map[string]Setting, error) {
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
		return nil, fmt.Errorf("%s:%d: a configuration is a map of flags and their values, for example `namespace: web`", file, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		origin := fmt.Sprintf("%s:%d", file, key.Line)
		if before, twice := settings[key.Value]; twice {
			return nil, fmt.Errorf("%s: %s is set already at %s", origin, key.Value, before.Origin)
		}
		if value.Kind != yamlv3.ScalarNode || value.Tag == "!!null" {
			return nil, fmt.Errorf("%s: %s takes one value: a text, a number, true or false", origin, key.Value)
		}
		settings[key.Value] = Setting{Value: value.Value, Origin: origin, FromFile: true}
	}
	return settings, nil
}

// yamlError puts the place into the form that all errors have. The library's own
// words quote the file, so only the first line of them is taken.
func yamlError(file string, err error) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		return fmt.Errorf("%s:%s", file, rest)
	}
	return fmt.Errorf("%s: %s", file, text)
}
