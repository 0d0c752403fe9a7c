package commands

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

// TestTroubleshootingMessages checks that each message in docs/troubleshooting.md is in the source of podctl, or is a
// reason of the kubelet that podctl uses. Placeholders for names are left out.
func TestTroubleshootingMessages(t *testing.T) {
	text, err := os.ReadFile("../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	source := sourceText(t)
	names := regexp.MustCompile(`…|default/web|FILE:LINE:COLUMN|12:00:10|\bPOD\b|: |in use by`)
	found := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(string(text), -1) {
		for _, message := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			for _, part := range names.Split(message[1], -1) {
				if part = strings.Trim(part, " ():,"); part != "" && !strings.Contains(source, part) {
					t.Errorf("no message of podctl contains %q of %q", part, message[1])
				}
				found++
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d texts were checked", found)
	}
}

// sourceText returns the text of all source files of the product.
func sourceText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{".", "../runtime", "../podspec"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestUsageExamples checks that the manifests in docs/usage.md and README are valid.
func TestUsageExamples(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```|<<END\n(.*?)END\n")
	found := 0
	for _, file := range []string{"../docs/usage.md", "../README.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			found++
			loader := load.Loader{
				Reader: input.Reader{Stdin: strings.NewReader(block[1] + block[2])}, Store: true, Workloads: true,
			}
			m, err := loader.Load(t.Context(), "-")
			if err = errors.Join(err, m.Err()); err != nil {
				t.Errorf("%s: %v\n%s", file, err, block[0])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d manifests were found", found)
	}
}
