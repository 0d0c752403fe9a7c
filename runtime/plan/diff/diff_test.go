package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/podspec/digest"
)

func TestChangesNameTheFields(t *testing.T) {
	before := map[string]any{
		"image": "a:1", "args": []any{"x"},
		"env": []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "S", "value": digest.SecretPrefix + "k:aa"}},
	}
	after := map[string]any{
		"image": "a:2", "args": []any{"x", "y"},
		"env": []any{map[string]any{"name": "B", "value": "2"}, map[string]any{"name": "S", "value": digest.SecretPrefix + "k:bb"}},
	}
	var got []string
	for _, c := range Trees(before, after).Changes {
		got = append(got, c.String())
	}
	want := []string{`args: ["x"] -> ["x","y"]`, "env[A]: - 1", "env[B]: + 2", "env[S].value: (secret changed)", "image: a:1 -> a:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// tree reads JSON as a tree.
func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	got, ok := Decode(text)
	if !ok {
		t.Fatalf("%s is not a tree", text)
	}
	return got
}

func changesOf(d Diff) []string {
	var texts []string
	for _, c := range d.Changes {
		texts = append(texts, c.String())
	}
	return texts
}

// TestTrees compares values by path, lists of named entries by name, and all other lists as a whole.
func TestTrees(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
		unchanged     int
	}{
		"the same":                {`{"a": 1, "b": {"c": [1, 2]}}`, `{"b": {"c": [1, 2]}, "a": 1}`, nil, 2},
		"nothing and nothing":     {`{}`, `{}`, nil, 0},
		"a value":                 {`{"a": "x"}`, `{"a": "y"}`, []string{"a: x -> y"}, 0},
		"a number":                {`{"a": 1}`, `{"a": 2}`, []string{"a: 1 -> 2"}, 0},
		"a value that comes":      {`{}`, `{"a": true}`, []string{"a: + true"}, 0},
		"a removed value":         {`{"a": "x"}`, `{}`, []string{"a: - x"}, 0},
		"in the order of paths":   {`{"b": 1, "a": 1}`, `{"a": 2, "b": 2}`, []string{"a: 1 -> 2", "b: 1 -> 2"}, 0},
		"below":                   {`{"a": {"b": {"c": 1, "d": 1}}}`, `{"a": {"b": {"c": 2, "d": 1}}}`, []string{"a.b.c: 1 -> 2"}, 1},
		"a map that comes":        {`{}`, `{"a": {"b": 1}}`, []string{`a: + {"b":1}`}, 0},
		"a map that becomes text": {`{"a": {"b": 1}}`, `{"a": "x"}`, []string{`a: {"b":1} -> x`}, 0},
		"a list of values":        {`{"a": [1, 2]}`, `{"a": [2, 1]}`, []string{"a: [1,2] -> [2,1]"}, 0},
		"named entries": {
			`{"a": [{"name": "x", "v": 1}, {"name": "y", "v": 1}]}`,
			`{"a": [{"name": "y", "v": 1}, {"name": "x", "v": 2}]}`,
			[]string{"a[x].v: 1 -> 2"},
			2,
		},
		"an entry that comes":   {`{"a": [{"name": "x"}]}`, `{"a": [{"name": "x"}, {"name": "y"}]}`, []string{`a[y]: + {"name":"y"}`}, 1},
		"an entry with a value": {`{"env": []}`, `{"env": [{"name": "A", "value": "1"}]}`, []string{"env[A]: + 1"}, 0},
		"by where it is mounted": {
			`{"m": [{"mountPath": "/a", "ro": true}]}`,
			`{"m": [{"mountPath": "/a", "ro": false}]}`,
			[]string{"m[/a].ro: true -> false"},
			1,
		},
		"by its device": {
			`{"m": [{"devicePath": "/dev/a", "v": 1}]}`,
			`{"m": [{"devicePath": "/dev/a", "v": 2}]}`,
			[]string{"m[/dev/a].v: 1 -> 2"},
			1,
		},
		"a name that is twice": {
			`{"a": [{"name": "x"}, {"name": "x"}]}`,
			`{"a": [{"name": "x"}]}`,
			[]string{`a: [{"name":"x"},{"name":"x"}] -> [{"name":"x"}]`},
			0,
		},
		"entries without a name": {`{"a": [{"v": 1}]}`, `{"a": [{"v": 2}]}`, []string{`a: [{"v":1}] -> [{"v":2}]`}, 0},
		"a removed list":         {`{"a": [{"name": "x", "v": 1}]}`, `{}`, []string{`a[x]: - {"name":"x","v":1}`}, 0},
	} {
		d := Trees(tree(t, c.before), tree(t, c.after))
		if diff := cmp.Diff(c.want, changesOf(d)); diff != "" || d.Unchanged != c.unchanged {
			t.Errorf("%s: %d unchanged, (-want +got)\n%s", name, d.Unchanged, diff)
		}
	}
}

// TestTypesOfProgramsAreThoseOfJSON checks that Go numbers and structs equal the values of a stored tree.
func TestTypesOfProgramsAreThoseOfJSON(t *testing.T) {
	type port struct {
		Name string `json:"name"`
		Port int32  `json:"port"`
	}
	after := map[string]any{"ports": []port{{"http", 80}}, "n": int64(3)}
	if d := Trees(tree(t, `{"ports": [{"name": "http", "port": 80}], "n": 3}`), after); len(d.Changes) > 0 || d.Unchanged != 2 {
		t.Errorf("%+v", d)
	}
	if got := Plain(map[string]any{"f": func() {}}); got["f"] == nil {
		t.Error("what cannot be written is lost")
	}
}

// TestDivided checks that added or removed values are listed by their parts where requested.
func TestDivided(t *testing.T) {
	before, after := tree(t, `{}`), tree(t, `{"hook": {"start": 1, "stop": 2}, "other": {"a": 1}}`)
	d := Divided(before, after, func(path string) bool { return path == "hook" })
	if diff := cmp.Diff([]string{"hook.start: + 1", "hook.stop: + 2", `other: + {"a":1}`}, changesOf(d)); diff != "" {
		t.Errorf("it came (-want +got)\n%s", diff)
	}
	d = Divided(after, before, func(path string) bool { return path == "hook" })
	if diff := cmp.Diff([]string{"hook.start: - 1", "hook.stop: - 2", `other: - {"a":1}`}, changesOf(d)); diff != "" {
		t.Errorf("it went (-want +got)\n%s", diff)
	}
}

// TestSecretsAreNotShown also checks that secrets differ only if that is known.
func TestSecretsAreNotShown(t *testing.T) {
	digest := func(key, sum string) string { return digest.SecretPrefix + key + ":" + sum }
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"the same":      {digest("k", "aa"), digest("k", "aa"), nil},
		"another value": {digest("k", "aa"), digest("k", "bb"), []string{"s: (secret changed)"}},
		"another key":   {digest("k", "aa"), digest("l", "bb"), nil},
		"open before":   {"hunter2", digest("k", "aa"), []string{"s: (secret changed)"}},
		"open now":      {digest("k", "aa"), "hunter2", []string{"s: (secret changed)"}},
	} {
		d := Trees(map[string]any{"s": c.before}, map[string]any{"s": c.after})
		if diff := cmp.Diff(c.want, changesOf(d)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		for _, change := range d.Changes {
			if change.Before != "" || change.After != "" || !change.Sensitive {
				t.Errorf("%s: %+v", name, change)
			}
		}
	}
}

func TestTextNamesTheFirstChange(t *testing.T) {
	a, b := Change{Path: "a", Before: "1", After: "2"}, Change{Path: "b", After: "2"}
	for want, changes := range map[string][]Change{
		"its definition changed": nil, "a: 1 -> 2": {a}, "b: + 2 (and 1 more)": {b, a}, "a: 1 -> 2 (and 2 more)": {a, b, b},
	} {
		if got := (Diff{Changes: changes}).Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestDecode checks that a missing or unreadable text gives no tree.
func TestDecode(t *testing.T) {
	for text, want := range map[string]bool{`{"a": 1}`: true, "{}": true, "": false, "{": false, "[1]": false, `"a"`: false} {
		if _, ok := Decode(text); ok != want {
			t.Errorf("%q: %t", text, ok)
		}
	}
}
