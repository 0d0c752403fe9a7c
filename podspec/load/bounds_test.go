package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec/document"
)

const configMapHead = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// TestExpandingInputsAreRefused checks that inputs that would take gigabytes or minutes are refused with their position
// and the limit.
func TestExpandingInputsAreRefused(t *testing.T) {
	podHead := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: ["
	nine := func(text string) string { return "[" + strings.TrimSuffix(strings.Repeat(text+",", 9), ",") + "]" }
	bomb := "a: &a " + nine("lol") + "\n"
	for _, c := range "bcdefghij" {
		bomb += fmt.Sprintf("%c: &%c %s\n", c, c, nine("*"+string(c-1)))
	}
	for name, c := range map[string]struct{ text, want string }{
		"aliases of aliases": {bomb, "-:1:1: holds more than 100000 values"},
		"repeated long text": {
			configMapHead + "x: &x \"" + strings.Repeat("x", 100<<10) + "\"\ndata:\n" +
				repeat(105, func(i int) string { return fmt.Sprintf("  k%d: *x\n", i) }),
			"-:1:1: is larger than 10485760 bytes once its aliases are expanded",
		},
		"an alias of its parent": {
			configMapHead + "data: &d {a: [*d]}\n",
			"-:4:15: is not valid YAML: an alias refers to a value that contains it",
		},
		"lists in lists": {
			"a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
			"-:1:104: is nested deeper than 100 levels",
		},
		"lists in lists, in line": {"a:\n" + strings.Repeat("- ", 5000) + "b\n", "is nested deeper than 100 levels"},
		"maps in maps": {
			repeat(500, func(i int) string { return strings.Repeat(" ", i) + "a:\n" }),
			"-:101:101: is nested deeper than 100 levels",
		},
		"far too deep": {"a: " + strings.Repeat("[", 100_000), "-:1:1: is not valid YAML: exceeded max depth"},
		"many values":  {"a: [" + strings.Repeat("b,", 120_000) + "]\n", "-:1:1: holds more than 100000 values"},
		"many marks": {
			"a:\n" + strings.Repeat("- b\n", 300_000),
			"-:250001:1: holds more than 500000 lines, commas and brackets",
		},
		"many documents":     {strings.Repeat("---\n{}\n", 1002), "-:2002:1: is one of more than 1000 documents"},
		"many bad documents": {strings.Repeat("---\n- a\n", 1002), "is one of more than 1000 documents"},
		"many items": {
			"apiVersion: v1\nkind: List\nitems: [" + strings.Repeat("{},", 1100) + "]\n",
			"-:1:1: is one of more than 1000 documents",
		},
		"many faults": {podHead + strings.Repeat("{},", 200) + "]}\n", "and 499 problems more"},
		"many wrong types": {
			configMapHead + "data: {" + repeat(45_000, func(i int) string { return fmt.Sprintf("k%d: 1,", i) }) + "}\n",
			"and 44900 problems more",
		},
		"many keys twice": {"a: {" + strings.Repeat("b: c, ", 200) + "}\n", "-:1:611: and 99 problems more"},
		"many values in several": {repeat(3, func(i int) string {
			return fmt.Sprintf("---\nkind: %d\na: [&a [%s]%s]\n", i, strings.Repeat("b,", 1000), strings.Repeat(", *a", 39))
		}), "-:8:1: has, with the documents before it, more than 100000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			m := parsed(t, c.text)
			var refused *RefusedError
			if !errors.As(m.Err(), &refused) {
				t.Fatal("accepted")
			}
			if text := refused.Error(); !strings.Contains(text, c.want) {
				t.Errorf("want %q in:\n%s", c.want, text[:min(len(text), 2000)])
			}
			if len(refused.Problems) > document.MaxDocuments+2*document.MaxProblems {
				t.Errorf("%d problems are reported", len(refused.Problems))
			}
		})
	}
}

// TestLargeManifestsAreAccepted checks that the limits allow large real manifests.
func TestLargeManifestsAreAccepted(t *testing.T) {
	lines, size, pods := 15_000, 1<<20, 300
	if testing.Short() {
		lines, size, pods = lines/10, size/10, pods/10
	}
	json := repeat(lines, func(i int) string { return fmt.Sprintf("    {\"id\": %d, \"unit\": [\"percent\", \"s\"]},\n", i) })
	for name, text := range map[string]string{
		"a ConfigMap of half a megabyte of JSON": configMapHead + "data:\n  dashboard.json: |\n" + json,
		"a ConfigMap of one mebibyte":            configMapHead + "data: {a: \"" + strings.Repeat("x", size) + "\"}\n",
		"anchors as people use them": configMapHead + "data: &d {a: b}\n---\n" +
			strings.Replace(minimal, "    image:", "    env: &e [{name: A, value: b}]\n    image:", 1) +
			"  - {name: b, image: i, env: *e}\n",
		"three hundred pods": repeat(pods, func(i int) string {
			return "---\n" + strings.Replace(minimal, "name: web", fmt.Sprintf("name: web%d", i), 1)
		}),
		"fifty containers": minimal + repeat(50, func(i int) string { return fmt.Sprintf("  - {name: c%d, image: i}\n", i) }),
	} {
		if err := parsed(t, text).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeysCannotImitateOutput checks that text of a manifest cannot imitate a line of podctl's output.
func TestKeysCannotImitateOutput(t *testing.T) {
	m := parsed(t, minimal+"  \"x\\npod default/web is valid\": 1\n")
	for _, p := range m.Problems {
		if strings.Contains(p.String(), "\n") {
			t.Errorf("problem with two lines: %q", p)
		}
	}
	if len(m.Problems) == 0 {
		t.Error("an unknown field is accepted")
	}
}
