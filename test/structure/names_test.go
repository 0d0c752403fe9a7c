package structure

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fileName = regexp.MustCompile(`[\w./-]*\w\.go\b`)
	// ofKubernetes matches a file of the Kubernetes sources.
	ofKubernetes = regexp.MustCompile(`^(pkg|test/e2e_node)/`)
	// mixedCase matches a name with an inner capital letter, which no English word has.
	mixedCase = regexp.MustCompile(`\b([a-z]+[A-Z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*)\b`)
	// others matches the projects whose functions comments name.
	others = regexp.MustCompile(`(?i)kube|controller|runc\b|containerd|\bAPI\b|libcontainer|cobra|docker`)
)

// TestFilesInComments checks that a file in a comment or a document exists. A bare name must exist in the package of
// the comment, or anywhere for a document. Files of Kubernetes are named with their paths.
func TestFilesInComments(t *testing.T) {
	tr := readTree(t)
	base := map[string]bool{}
	for file := range tr.files {
		base[path.Base(file)] = true
	}
	for _, c := range append(tr.comments(), documents(t)...) {
		for _, name := range fileName.FindAllString(c.text, -1) {
			placeholder := name == "X.go" || strings.Contains(name, "NAME.go")
			exists := tr.files[name] || tr.files[path.Join(c.dir, name)] || c.dir == "" && base[name]
			if !exists && !placeholder && !ofKubernetes.MatchString(name) {
				t.Errorf("%s names %s, which does not exist", c.at, name)
			}
		}
	}
}

// TestNamesInComments checks that a name with an inner capital letter exists in the code, unless the comment is about
// code of another project. The first word of a comment always belongs to this code.
func TestNamesInComments(t *testing.T) {
	tr := readTree(t)
	for _, r := range readRules(t)["words"] {
		tr.words[r.name] = true
	}
	for _, c := range tr.comments() {
		text := c.text
		if others.MatchString(text) {
			text, _, _ = strings.Cut(text, " ")
		}
		for _, name := range mixedCase.FindAllString(text, -1) {
			if !tr.words[name] && !tr.words[strings.TrimSuffix(name, "s")] {
				t.Errorf("%s names %s, which does not exist", c.at, name)
			}
		}
	}
}

// TestRemovedTerms checks that no comment uses a replaced term.
func TestRemovedTerms(t *testing.T) {
	terms := map[string]bool{}
	for _, r := range readRules(t)["removed terms"] {
		terms[r.name] = true
	}
	for _, c := range readTree(t).comments() {
		for _, w := range word.FindAllString(c.text, -1) {
			if terms[strings.ToLower(w)] && !c.test {
				t.Errorf("%s says %s", c.at, w)
			}
		}
	}
}

// comments returns all comments of the code.
func (tr *tree) comments() []comment {
	var all []comment
	for _, p := range tr.packages {
		all = append(all, p.comments...)
	}
	return all
}

// documents returns the documents for users and developers.
func documents(t *testing.T) []comment {
	t.Helper()
	var all []comment
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no documents: %v", err)
		}
		for _, p := range paths {
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, comment{at: strings.TrimPrefix(p, root+"/"), text: string(text)})
		}
	}
	return all
}
