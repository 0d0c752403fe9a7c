package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/input"
)

// TestSyntaxErrors checks the positions and explanations of syntax errors.
func TestSyntaxErrors(t *testing.T) {
	const head = "a:\n  b:\n  - c: 1\n    d: 2\n"
	for name, c := range map[string]struct{ text, want string }{
		"too little indented": {
			head + "   e: 3\nf: 4\n",
			"5: a key is expected here; check the indentation, and quotes and brackets above",
		},
		"a tab":                      {head + "\te: 3\nf: 4\n", "5: a tab is used where spaces are expected; YAML indents with spaces"},
		"a tab before the first key": {"a:\n\te: 3\nf: 4\n", "2: a tab is used where spaces are expected; YAML indents with spaces"},
		"a tab after blanks":         {"a:\n  b:\n  \tc: 3\n", "3: a tab is used where spaces are expected; YAML indents with spaces"},
		"a tab before an item":       {"a:\n\t- e\n", "2: a tab is used where spaces are expected; YAML indents with spaces"},
		"an open bracket":            {head + "    e: [x\n    f: 4\n", "5: a list [...] is not closed, or lacks a comma"},
		"an open quote":              {head + "    e: \"x\n    f: 4\n", "5: a quote is not closed"},
		"no colon":                   {head + "    e\n    f: 4\n", "5: a key needs a colon and a space after it"},
		"two colons": {
			head + "    e: f: 4\ng: 5\n",
			"5: this line has a second colon, or is indented too far; put the value in quotes",
		},
		"an at sign": {head + "    e: @f\ng: 5\n", "5: a value cannot begin with this character; put it in quotes"},
		"a list that is none": {
			"a:\n- b\n- c\nd: 1\n- e\nf: 1\n",
			"5: a key is expected here; check the indentation, and quotes and brackets above",
		},
		"lists over lines": {
			"a: [\n  b,\n  c,\n]\nd: {e: 1,\n  f: 2}\n  g: 3\n",
			"7: a key is expected here; check the indentation, and quotes and brackets above",
		},
	} {
		docs, problems := Split(input.Source{Name: "x", Text: []byte(c.text)})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		problems = docs[0].Parse()
		if len(problems) != 1 {
			t.Errorf("%s: %v", name, problems)
			continue
		}
		if got := fmt.Sprintf("%d: %s", problems[0].Line, strings.TrimPrefix(problems[0].Detail, "is not valid YAML: ")); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
