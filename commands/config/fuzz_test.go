package config

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzConfig checks that, for any configuration, an error names the file and, if known, the line. A setting names its
// source.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"", "namespace: edge\nstate-dir: /data # here\n", "a: &a [*a]\n", "- a\n", "a: b\na: c\n",
		"? {a: b}\n: c\n", "a: |\n  b\n", "{<<: *a}", "agent: {a: [b, c]}", "agent: [a]", "\xff",
	} {
		f.Add([]byte(seed))
	}
	place := regexp.MustCompile(`^f\.yaml(:\d+)?: `)
	f.Fuzz(func(t *testing.T, text []byte) {
		settings, err := parse("f.yaml", text, Sections{"agent": pflag.NewFlagSet("agent", pflag.ContinueOnError)})
		if err != nil && !place.MatchString(err.Error()) {
			t.Errorf("error without a place: %q", err)
		}
		for key, s := range settings {
			if !strings.HasPrefix(s.Origin, "f.yaml:") || !s.FromFile {
				t.Errorf("%q comes from %q", key, s.Origin)
			}
		}
	})
}
