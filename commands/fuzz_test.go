package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFuzzTargets checks that `make fuzz` runs all fuzz tests.
func TestFuzzTargets(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllSubmatch(text, -1) {
			found++
			target := strings.TrimPrefix(filepath.Dir(path), "../") + ":" + string(m[1])
			if !strings.Contains(string(makefile), target) {
				t.Errorf("make fuzz does not run %s", target)
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d fuzz tests are found: %v", found, err)
	}
}
