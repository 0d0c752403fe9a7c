package document

import (
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/input"
)

const two = `# The first.
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: app
    <<: &more {image: "i:1"}
---
apiVersion: v1
kind: Secret
metadata: {name: b}
stringData: {k: hunter2}
`

// parsed returns the documents of a text, which must be valid.
func parsed(t *testing.T, text string) []*Document {
	t.Helper()
	docs, problems := Split(input.Source{Name: "file", Text: []byte(text)})
	for _, d := range docs {
		problems = append(problems, d.Parse()...)
	}
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return docs
}

// TestPosition checks the position of a field, also of one from a merge. A missing field has the position where it
// should be.
func TestPosition(t *testing.T) {
	docs := parsed(t, two)
	if len(docs) != 2 {
		t.Fatalf("%d documents", len(docs))
	}
	for path, want := range map[string][2]int{
		"":                          {2, 1},
		"metadata.name":             {4, 12},
		"spec.containers[0]":        {7, 5},
		"spec.containers[0].name":   {7, 5},
		"spec.containers[0].image":  {8, 16},
		"spec.containers[0].args":   {7, 5},
		"spec.containers[7].name":   {6, 3},
		"spec.hostname":             {5, 1},
		"spec.containers[zero].tty": {6, 3},
	} {
		if line, column := docs[0].Position(path); line != want[0] || column != want[1] {
			t.Errorf("%s: %d:%d, want %d:%d", path, line, column, want[0], want[1])
		}
	}
	if line, column := docs[1].Position("stringData[k]"); line != 13 || column != 14 {
		t.Errorf("in the second document: %d:%d", line, column)
	}
}

// TestValuesOfADocument checks that keys are followed through merges.
func TestValuesOfADocument(t *testing.T) {
	d := parsed(t, two)[0]
	if got := d.Scalar("spec", "containers", "0", "image"); got != "i:1" {
		t.Errorf("image %q", got)
	}
	if d.Scalar("spec", "nothing", "0") != "" || d.Defines("spec", "nothing") || !d.Defines("spec", "containers", "0", "image") {
		t.Error("a key that is not there leads somewhere, or one that is there nowhere")
	}
}

// TestOnlySecretsAreHidden checks that a document without a known kind may be a Secret.
func TestOnlySecretsAreHidden(t *testing.T) {
	for text, want := range map[string]bool{
		"kind: Pod\n": false, "kind: ConfigMap\n": false, "kind: PersistentVolumeClaim\n": false,
		"kind: Service\n": false, "kind: Deployment\n": false, "kind: ReplicationController\n": false,
		"kind: Secret\n": true, "kind: List\n": true, "kind: Other\n": true, "a: b\n": true,
	} {
		if got := parsed(t, text)[0].MayBeSecret(); got != want {
			t.Errorf("%q may be a Secret: %t", text, got)
		}
	}
	docs := parsed(t, two)
	if p := docs[1].At(ClassInvalid, "stringData[hunter2 x].y", "is wrong"); p.Path != "stringData" {
		t.Errorf("a path in a Secret: %s", p)
	}
	if p := docs[0].At(ClassInvalid, "metadata.labels[a/b]", "is wrong"); p.String() != "file:4:1: metadata.labels[a/b]: is wrong" {
		t.Errorf("a path in a Pod: %s", p)
	}
}

// TestSplitKeepsLines checks the start lines of documents, and that empty documents are omitted.
func TestSplitKeepsLines(t *testing.T) {
	docs, problems := Split(input.Source{Name: "-", Text: []byte("# nothing\n---\n\n--- {a: b}\n---\n# c\nc: d\n")})
	var starts []int
	for _, d := range docs {
		if more := d.Parse(); len(more) > 0 {
			t.Fatal(more)
		}
		line, _ := d.Position("a")
		starts = append(starts, line)
	}
	if want := []int{4, 7}; !slices.Equal(starts, want) || len(problems) > 0 {
		t.Errorf("documents in lines %v, want %v; %v", starts, want, problems)
	}
	if docs, problems := Split(input.Source{Name: "-"}); len(docs) > 0 || len(problems) != 1 {
		t.Errorf("an empty source: %d documents, %v", len(docs), problems)
	}
}

// TestFewProblemsAreListed checks that problems beyond the limit are only counted.
func TestFewProblemsAreListed(t *testing.T) {
	var text strings.Builder
	for range MaxProblems + 6 {
		text.WriteString("a: b\n")
	}
	docs, _ := Split(input.Source{Name: "-", Text: []byte(text.String())})
	problems := docs[0].Parse()
	if len(problems) != MaxProblems+1 || problems[MaxProblems].Detail != "and 5 problems more" {
		t.Errorf("%d problems, the last is %s", len(problems), problems[len(problems)-1])
	}
}

// TestProblemsAreLines checks that a problem has the form of a compiler's message and stays on one line.
func TestProblemsAreLines(t *testing.T) {
	for want, p := range map[string]Problem{
		"f:1:2: a.b: is wrong":    {File: "f", Line: 1, Column: 2, Path: "a.b", Detail: "is wrong"},
		"f: is wrong":             {File: "f", Detail: "is wrong"},
		`f:1:2: a\nb: is \x1b[2J`: {File: "f", Line: 1, Column: 2, Path: "a\nb", Detail: "is \x1b[2J"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if one, three := Counted(1, "problem"), Counted(3, "problem"); one != "1 problem" || three != "3 problems" {
		t.Errorf("%q and %q", one, three)
	}
}

// TestIsEmpty checks that only a text without any document is empty.
func TestIsEmpty(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "\n \t\n": true, "# later\n---\n...\n": true, "\uFEFF": true, "\xff\xfe": true,
		"a": false, "---\n{}\n": false, "\x00": false, "# a\nb: c\n": false,
	} {
		if got := IsEmpty([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
