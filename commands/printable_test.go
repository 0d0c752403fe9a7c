package commands

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
)

// evil has characters that move a cursor, change the direction of text, or are invisible.
const evil = "a\x1b[31mb\u009b1mc\u061cd\u200ee\u200ff\u202eg\u2066h\u2069i\u2028j\u2029k\u200bl" +
	"\ufeffm\u00adn\U000e0041o\u0085p\x7fq\x00r\u2060s"

// TestMessagesCannotImitateOutput checks that the message of a program cannot imitate a line of podctl's output, or
// control a terminal.
func TestMessagesCannotImitateOutput(t *testing.T) {
	l := newLab(t)
	forged := "gone\nName:               other\nEvents:\n  Normal  Forged\npod default/web deleted\n" +
		"podctl: forged\r" + evil
	manifest := l.Write("web", "  restartPolicy: Never\n  containers: [{name: a, image: 'i:1'}]\n")
	text := contentsOf(t, manifest)
	quoted, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "{name: web}",
		"{name: web, annotations: {note: "+string(terminal.VisibleJSON(quoted))+"}}", 1)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.OnExec(func(string, []string) *runtimeapi.ExecSyncResponse { return &runtimeapi.ExecSyncResponse{} })
	l.Must("apply", manifest)
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
		code, stdout, stderr := l.Call(args...)
		if code != exit.OK && args[0] != "export" {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
		for _, r := range stdout + stderr {
			if (terminal.Printable(string(r)) != string(r) && r <= 0xffff) || r == utf8.RuneError {
				t.Errorf("%v: %U is printed", args, r)
			}
		}
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "Name:               other") || strings.HasPrefix(line, "  Normal  Forged") ||
				strings.HasPrefix(line, "pod default/web deleted") {
				t.Errorf("%v: a forged line: %s", args, line)
			}
		}
	}
}
