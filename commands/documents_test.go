package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsAreDescribed checks that docs/documents.md describes every kind of step, reason and check.
func TestDocumentsAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../docs/documents.md")
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for file, pattern := range map[string]string{
		"../runtime/model/reason.go": `Reason = "(\w+)"`,
		"../runtime/plan/step.go":    `Kind = "(\w+)"`,
		"../runtime/doctor/*.go":     `named\("(\w+)"`,
	} {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(contentsOf(t, file), -1) {
			words++
			if !strings.Contains(string(page), "`"+match[1]+"`") {
				t.Errorf("docs/documents.md does not name %s", match[1])
			}
		}
	}
	if words < 40 {
		t.Errorf("only %d words were checked", words)
	}
}

// contentsOf returns the contents of the files that match a pattern.
func contentsOf(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestThreatModelNamesTests checks that each line of the threat model names a test, and that the test exists.
func TestThreatModelNamesTests(t *testing.T) {
	page := contentsOf(t, "../docs/security.md")
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|test)\w+)\(`).FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|test)\\w+)`")
	// Other tables than those of attacks need no tests.
	lines, attacks := 0, false
	for line := range strings.Lines(page) {
		attacks = strings.HasSuffix(line, "| tests |\n") || attacks && strings.HasPrefix(line, "|")
		found := named.FindAllStringSubmatch(line, -1)
		for _, m := range found {
			if !there[m[1]] {
				t.Errorf("docs/security.md names the test %s, which does not exist", m[1])
			}
		}
		if attacks && strings.HasPrefix(line, "| ") && !strings.HasSuffix(line, "| tests |\n") {
			if lines++; len(found) == 0 {
				t.Errorf("no test proves %s", line)
			}
		}
	}
	if lines < 25 {
		t.Errorf("only %d lines were checked", lines)
	}
}
