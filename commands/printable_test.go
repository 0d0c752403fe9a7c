package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"
)

// evil has everything that moves a cursor, turns a line round, or is not seen.
const evil = "a\x1b[31mb\u009b1mc\u061cd\u200ee\u200ff\u202eg\u2066h\u2069i\u2028j\u2029k\u200bl\ufeffm\u00adn\U000e0041o\u0085p\x7fq\x00r\u2060s"

// TestDocumentsHideNothing: JSON and YAML show what is no visible character as an escape, and
// are the same documents.
func TestDocumentsHideNothing(t *testing.T) {
	value := map[string]any{
		"evil": evil, evil: "as a key", "lines": "one\ntwo\u202e\n", "plain": "größer → ✓", "marks": `\x01x202e; \u0001x202e; x1x x2xx1x`,
		"list": []any{evil, "x", 12.5, true, nil},
	}
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		if err := writeDocument(&out, format, value); err != nil {
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

// TestMessagesForgeNothing: whatever a program leaves as its message, no output has a line
// of it that looks like podctl's own, or does something to a terminal.
func TestMessagesForgeNothing(t *testing.T) {
	l := newLab(t)
	forged := "gone\nName:               other\nEvents:\n  Normal  Forged\npod default/web deleted\npodctl: forged\r" + evil
	manifest := l.write("web", "  restartPolicy: Never\n  containers: [{name: a, image: 'i:1'}]\n")
	text := contentsOf(t, manifest)
	quoted, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "{name: web}", "{name: web, annotations: {note: "+string(visibleJSON(quoted))+"}}", 1)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse { return &runtimeapi.ExecSyncResponse{} })
	l.must("apply", manifest)
	for _, args := range [][]string{
		{"describe", "web"},
		{"get", "web", "-o", "json"},
		{"get", "-A", "-o", "yaml"},
		{"get", "-A", "-o", "jsonpath={.items[*].metadata.annotations}"},
		{"snapshot", "web"},
		{"export", "web"},
		{"render", manifest},
		{"plan", manifest},
		{"plan", "-o", "yaml"},
		{"get", "-A"},
	} {
		code, stdout, stderr := l.call(args...)
		if code != exitOK && args[0] != "export" {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
		for _, r := range stdout + stderr {
			if (isHidden(r) && r <= 0xffff) || r == utf8.RuneError {
				t.Errorf("%v: %U gets out", args, r)
			}
		}
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "Name:               other") || strings.HasPrefix(line, "  Normal  Forged") || strings.HasPrefix(line, "pod default/web deleted") {
				t.Errorf("%v: a forged line: %s", args, line)
			}
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b\u009b\u202e\u200b\xff\U000e0041": `a\x1b\x9b\u202e\u200b\xff\U000e0041`,
		"größer\t→\nü":                          "größer\t→\nü",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := printableLine("a\nb\r"); got != `a\nb\x0d` {
		t.Errorf("%q", got)
	}
	if got := printableLines("a\nb\n  c\n\n"); got != "a\n  b\n  c" {
		t.Errorf("%q", got)
	}
}
