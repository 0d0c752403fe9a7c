package structure

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codeSpan matches code in a text.
var codeSpan = regexp.MustCompile("`[^`\n]+`")

// TestWording checks that comments, messages and documents use plain words.
func TestWording(t *testing.T) {
	avoid := readWording(t, "texts")
	for _, c := range append(readTree(t).texts(), documents(t)...) {
		checkWording(t, c.at, codeSpan.ReplaceAllString(c.text, "CODE"), avoid)
	}
}

// TestWordingOfNames checks that identifiers and JSON keys use plain words.
func TestWordingOfNames(t *testing.T) {
	avoid := append(readWording(t, "texts"), readWording(t, "names")...)
	for _, p := range readTree(t).packages {
		checked := map[string]bool{}
		for _, c := range p.names {
			if !checked[c.text] {
				checkWording(t, c.at, c.text, avoid)
			}
			checked[c.text] = true
		}
	}
}

// TestWordingOfFiles checks that names of files and directories use plain words.
func TestWordingOfFiles(t *testing.T) {
	avoid := append(readWording(t, "texts"), readWording(t, "names")...)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && isSkipped(path, d.Name()) {
			return fs.SkipDir
		}
		stem := strings.TrimSuffix(d.Name(), filepath.Ext(d.Name()))
		words := wordsOf(strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(stem))
		checkWording(t, strings.TrimPrefix(path, root+"/"), words, avoid)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkWording(t *testing.T, at, text string, avoid []avoided) {
	t.Helper()
	for _, a := range avoid {
		for _, found := range a.expression.FindAllString(text, -1) {
			t.Errorf("%s: %q: write %s", at, found, a.instead)
		}
	}
}

// avoided is an expression and its replacement.
type avoided struct {
	expression *regexp.Regexp
	instead    string
}

// readWording reads the expressions in a section of wording.txt.
func readWording(t *testing.T, section string) []avoided {
	t.Helper()
	text, err := os.ReadFile("wording.txt")
	if err != nil {
		t.Fatal(err)
	}
	var avoid []avoided
	in := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			in = strings.Trim(line, "[]")
			continue
		}
		expression, instead, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("wording.txt: no colon in %q", line)
		}
		if in != section {
			continue
		}
		avoid = append(avoid, avoided{regexp.MustCompile("(?i)" + strings.ReplaceAll(expression, " ", `\s+`)), instead})
	}
	return avoid
}
