package structure

import (
	"fmt"
	"slices"
	"testing"
)

const (
	maxFiles           = 22
	maxMethods         = 25
	maxFilesOfReceiver = 6
)

// TestLimits checks the number of files of packages, and the number of methods of types and their files. A reader must
// be able to keep them in mind. Everything that rules.txt lists as too large must be too large.
func TestLimits(t *testing.T) {
	large := map[string]bool{}
	for _, r := range readRules(t)["too large"] {
		large[r.name] = true
	}
	check := func(name string, over bool, size string) {
		switch {
		case over && !large[name]:
			t.Errorf("%s has %s: at most %d files, or %d methods in %d files", name, size, maxFiles, maxMethods, maxFilesOfReceiver)
		case !over && large[name]:
			t.Errorf("%s has %s and is not too large any more: take it from rules.txt", name, size)
		}
		delete(large, name)
	}
	for _, p := range readTree(t).packages {
		check(p.dir, p.files > maxFiles, fmt.Sprintf("%d files", p.files))
		for receiver, files := range p.methods {
			methods := len(files)
			slices.Sort(files)
			files = slices.Compact(files)
			check(p.dir+"."+receiver, methods > maxMethods || len(files) > maxFilesOfReceiver,
				fmt.Sprintf("%d methods in %d files", methods, len(files)))
		}
	}
	for name := range large {
		t.Errorf("rules.txt has %s as too large, which does not exist", name)
	}
}
