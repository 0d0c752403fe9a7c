package structure

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// codeSpan matches code in a text.
var codeSpan = regexp.MustCompile("`[^`\n]+`")

// TestWording checks that comments, messages and documents use plain words.
func TestWording(t *testing.T) {
	avoid := readWording(t)
	for _, c := range append(readTree(t).texts(), documents(t)...) {
		text := codeSpan.ReplaceAllString(c.text, "CODE")
		for _, a := range avoid {
			for _, found := range a.expression.FindAllString(text, -1) {
				t.Errorf("%s: %q: write %s", c.at, found, a.instead)
			}
		}
	}
}

// avoided is an expression and its replacement.
type avoided struct {
	expression *regexp.Regexp
	instead    string
}

// readWording reads the expressions in wording.txt.
func readWording(t *testing.T) []avoided {
	t.Helper()
	text, err := os.ReadFile("wording.txt")
	if err != nil {
		t.Fatal(err)
	}
	var avoid []avoided
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		expression, instead, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("wording.txt: no colon in %q", line)
		}
		avoid = append(avoid, avoided{regexp.MustCompile("(?i)" + strings.ReplaceAll(expression, " ", `\s+`)), instead})
	}
	return avoid
}
