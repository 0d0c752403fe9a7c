package commands

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsAreDescribed: every kind of step and every reason is in the page
// that describes the documents.
func TestDocumentsAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../docs/documents.md")
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for file, pattern := range map[string]string{
		"../runtime/plan/reason.go": `Reason = "(\w+)"`,
		"../runtime/plan/step.go":   `Kind = "(\w+)"`,
	} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(code), -1) {
			words++
			if !strings.Contains(string(page), "`"+match[1]+"`") {
				t.Errorf("docs/documents.md does not name %s", match[1])
			}
		}
	}
	if words < 40 {
		t.Errorf("only %d words were looked for", words)
	}
}
