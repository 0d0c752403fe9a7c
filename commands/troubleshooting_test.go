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

// TestTroubleshootingMessages checks that each message in docs/troubleshooting.md and in the table of docs/cluster.md is
// in the source of podctl, or is a reason of the kubelet that podctl uses. Placeholders for names, and messages of
// kubectl, are left out.
func TestTroubleshootingMessages(t *testing.T) {
	source := sourceText(t)
	for _, page := range []struct {
		file, section, rows, names string
		atLeast                    int
	}{
		{"troubleshooting.md", "# Troubleshooting", "`[^|]*`", `…|default/web|FILE:LINE:COLUMN|12:00:10|\bPOD\b|: |in use by`, 20},
		{"cluster.md", "## When something is wrong", "[^|]*`[^|]*", `…|/?podctl-node|FILE|CSR`, 10},
	} {
		text, err := os.ReadFile("../docs/" + page.file)
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(text), page.section+"\n")
		rows := regexp.MustCompile(`(?m)^\| (`+page.rows+`) \|`).FindAllStringSubmatch(section, -1)
		if found := checkMessages(t, rows, source, regexp.MustCompile(page.names)); found < page.atLeast {
			t.Errorf("%s: only %d texts were checked", page.file, found)
		}
	}
}

// checkMessages checks the messages in the first cells of rows, and returns their number. names are placeholders.
func checkMessages(t *testing.T, rows [][]string, source string, names *regexp.Regexp) (found int) {
	t.Helper()
	for _, row := range rows {
		if strings.Contains(row[1], "`kubectl ") {
			continue
		}
		for _, message := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			for _, part := range names.Split(message[1], -1) {
				if part = strings.Trim(part, " ():,"); part != "" && !strings.Contains(source, part) {
					t.Errorf("no message of podctl contains %q of %q", part, message[1])
				}
				found++
			}
		}
	}
	return found
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
