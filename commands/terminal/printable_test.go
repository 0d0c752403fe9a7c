package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// evil has characters that move the cursor, change the writing direction, or are invisible.
const evil = "a\x1b[31mb\u009b1mc\u061cd\u200ee\u200ff\u202eg\u2066h\u2069i\u2028j\u2029k\u200bl" +
	"\ufeffm\u00adn\U000e0041o\u0085p\x7fq\x00r\u2060s"

// TestDocumentsHideNothing: JSON and YAML show invisible characters as escapes, and keep their value.
func TestDocumentsHideNothing(t *testing.T) {
	value := map[string]any{
		"evil":  evil,
		evil:    "as a key",
		"lines": "one\ntwo\u202e\n",
		"plain": "größer → ✓",
		"marks": `\x01x202e; \u0001x202e; x1x x2xx1x`,
		"list":  []any{evil, "x", 12.5, true, nil},
	}
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		if err := WriteDocument(&out, format, value); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if isHidden(r) && (r <= 0xffff || format == "yaml") {
				t.Errorf("%s has %U", format, r)
			}
		}
		var got map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if diff := cmp.Diff(value, got); diff != "" {
			t.Errorf("%s is another document (-want +got):\n%s\n%s", format, diff, out.String())
		}
		if !strings.Contains(out.String(), "größer → ✓") {
			t.Errorf("%s escapes what can be read:\n%s", format, out.String())
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b\u009b\u202e\u200b\xff\U000e0041": `a\x1b\x9b\u202e\u200b\xff\U000e0041`,
		"größer\t→\nü":                          "größer\t→\nü",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := PrintableLine("a\nb\r"); got != `a\nb\x0d` {
		t.Errorf("%q", got)
	}
	if got := PrintableLines("a\nb\n  c\n\n"); got != "a\n  b\n  c" {
		t.Errorf("%q", got)
	}
}
