package structure

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// codeSpan matches code in a text.
var codeSpan = regexp.MustCompile("`[^`\n]+`")

// TestWording checks that comments, messages and documents use plain words. Directories that wording.txt lists
// under "to rewrite" still use others.
func TestWording(t *testing.T) {
	avoid, old := readWording(t)
	used := map[string]bool{}
	for _, c := range append(readTree(t).texts(), documents(t)...) {
		dir := c.dir
		if dir == "" {
			dir = path.Dir(c.at)
		}
		for _, a := range avoid {
			for _, found := range a.expression.FindAllString(codeSpan.ReplaceAllString(c.text, "CODE"), -1) {
				if used[dir] = true; !old[dir] {
					t.Errorf("%s: %q: write %s", c.at, found, a.instead)
				}
			}
		}
	}
	for dir := range old {
		if !used[dir] {
			t.Errorf("%s uses plain words now: remove it from wording.txt", dir)
		}
	}
}

// avoided is an expression and its replacement.
type avoided struct {
	expression *regexp.Regexp
	instead    string
}

// readWording reads wording.txt: the expressions, and the directories that still have them.
func readWording(t *testing.T) (avoid []avoided, old map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("wording.txt")
	if err != nil {
		t.Fatal(err)
	}
	old = map[string]bool{}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line
		case section == "[avoid]":
			expression, instead, _ := strings.Cut(line, ": ")
			avoid = append(avoid, avoided{regexp.MustCompile("(?i)" + strings.ReplaceAll(expression, " ", `\s+`)), instead})
		default:
			old[line] = true
		}
	}
	return avoid, old
}
