package load

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/podctl/podctl/podspec/input"
)

// configMapNamed returns a ConfigMap with this name on one line.
func configMapNamed(name string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}", name)
}

// TestDocumentsAreNotLost checks that each document in terms of YAML is either read at its position, or refused with a
// message.
func TestDocumentsAreNotLost(t *testing.T) {
	one, two := configMapNamed("one"), configMapNamed("two")
	for name, c := range map[string]struct {
		text string
		// want lists the objects that are read, as line and name. refused is the expected problem.
		want, refused string
	}{
		"a marker":                 {one + "\n---\n" + two + "\n", "1 one, 3 two", ""},
		"an object after a marker": {one + "\n--- " + two + "\n", "1 one, 2 two", ""},
		"after a tab":              {one + "\n---\t" + two + "\n", "1 one, 2 two", ""},
		"a marker first":           {"--- " + one + "\n--- " + two + "\n", "1 one, 2 two", ""},
		"a comment after it":       {one + "\n--- # two\n" + two + "\n", "1 one, 3 two", ""},
		"a tag after it":           {one + "\n--- !!map\n" + two + "\n", "1 one, 3 two", ""},
		"an anchor after it":       {one + "\n--- &a\n" + two + "\n", "1 one, 3 two", ""},
		"a text after it":          {one + "\n--- |\n " + two + "\n", "1 one", "-:2:1: is not a Kubernetes object"},
		"an end":                   {one + "\n...\n" + two + "\n", "1 one, 3 two", ""},
		"an end and a marker":      {one + "\n...\n---\n" + two + "\n", "1 one, 4 two", ""},
		"an end with a comment":    {one + "\n... # end\n" + two + "\n", "1 one, 3 two", ""},
		"an end with an object":    {one + "\n... " + two + "\n", "1 one", `-:2:1: "..." ends a document`},
		"Windows":                  {one + "\r\n---\r\n" + two + "\r\n", "1 one, 3 two", ""},
		"a BOM":                    {"\uFEFF" + one + "\n---\n" + two + "\n", "1 one, 3 two", ""},
		"a BOM before a marker":    {"\uFEFF--- " + one + "\n---\n" + two + "\n", "1 one, 3 two", ""},
		"a directive": {
			"%YAML 1.1\n---\n" + two + "\n",
			"3 two",
			"-:1:1: is a directive, which podctl does not read: remove the line",
		},
		"a directive after a BOM":   {"\uFEFF%TAG ! x:\n---\n" + two + "\n", "3 two", "-:1:1: is a directive"},
		"after a BOM of a document": {one + "\n---\n\uFEFF\uFEFF%TAG ! x:\n---\n" + two + "\n", "1 one, 5 two", "-:3:1: is a directive"},
		"an end after a BOM":        {one + "\n---\n\uFEFF... " + two + "\n", "1 one", `-:3:1: "..." ends a document`},
		"UTF-16 in the middle":      {one + "\n---\n\xff\xfe%\x00T\x00\n\x00", "1 one", "-:3:1: is not valid UTF-8"},
		"a directive later":         {one + "\n...\n# tags\n%TAG ! x:\n---\n" + two + "\n", "1 one, 6 two", "-:4:1: is a directive"},
		"objects in lines":          {one + "\n" + two + "\n", "", "-:2:1: begins a second object: put a line with \"---\" before it"},
		"JSON objects": {
			`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}` + "\n\n" + `{"apiVersion": "v1"}`,
			"",
			"-:3:1: begins a second object",
		},
		"JSON objects in a line": {
			`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}{"apiVersion": "v1"}`,
			"",
			"-:1:1: begins a second object",
		},
		"something that is not YAML": {one + "\n}\n", "", "-:2:1: begins a second object"},
		"a marker in a text": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n  a: |\n    ---\n    ...\n    %b\n",
			"1 one",
			"",
		},
		"no markers":           {"---x: 1\n...y: 2\n", "", "apiVersion and kind are required"},
		"a form feed":          {one + "\n---\f\n" + two + "\n", "", "is not valid YAML"},
		"a space that is none": {one + "\n\u00a0\n", "", "-:2:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			a := &assembly{}
			a.addSource(input.Source{Name: "-", Text: []byte(c.text)})
			m := a.manifest()
			var got []string
			for _, o := range a.objects {
				line, _ := o.report.Position("metadata.name")
				if name == "a marker in a text" {
					line -= 2
				}
				got = append(got, fmt.Sprintf("%d %s", line, o.meta.Name))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
			if reported := problemsOf(m); (reported == "") != (c.refused == "") || !strings.Contains(reported, c.refused) {
				t.Errorf("want %q:\n%s", c.refused, reported)
			}
		})
	}
}

// TestHiddenLineEndsAreRefused checks hidden line ends, which would turn text that looks like part of a comment into a
// field.
func TestHiddenLineEndsAreRefused(t *testing.T) {
	for end, want := range map[string]string{
		"\u2028": `U+2028, which YAML treats as the end of a line: remove it, or write "\u2028" in double quotes`,
		"\u2029": `U+2029, which YAML treats as the end of a line: remove it, or write "\u2029" in double quotes`,
		"\u0085": `U+0085, which YAML treats as the end of a line: remove it, or write "\u0085" in double quotes`,
		"\r":     `is a carriage return without a line feed, which YAML treats as the end of a line: end lines with LF or CRLF`,
	} {
		for text, at := range map[string]string{
			minimal + "  # é" + end + "  hostNetwork: true\n": "-:9:6: ",
			minimal + "    args: ['a" + end + "b']\n":         "-:9:14: ",
			`{"apiVersion": "v1", "kind": "` + end + `Pod"}`:  "-:1:31: ",
			"# a\r\n# b" + end + "\r\n" + minimal:             "-:2:4: ",
			minimal + "---\n#" + end:                          "-:10:2: ",
		} {
			m := parsed(t, text)
			if reported := problemsOf(m); !strings.Contains(reported, at+"is ") || !strings.Contains(reported, want) || len(m.Pods) > 0 {
				t.Errorf("%q: want %q:\n%s", text, at+want, reported)
			}
		}
	}
	quoted := minimal + "    args: [\"\\u2028\\u2029\\u0085\\r\\L\\P\\N\"]\r\n"
	m := parsed(t, quoted)
	if m.Err() != nil || m.Pods[0].Pod.Spec.Containers[0].Args[0] != "\u2028\u2029\u0085\r\u2028\u2029\u0085" {
		t.Errorf("escaped: %v", m.Err())
	}
}

// TestUTF16 checks sources in UTF-16, in which line ends and markers have other bytes.
func TestUTF16(t *testing.T) {
	encoded := func(order binary.AppendByteOrder, text string) string {
		var b []byte
		for _, unit := range utf16.Encode([]rune("\uFEFF" + text)) {
			b = order.AppendUint16(b, unit)
		}
		return string(b)
	}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		m := parsed(t, encoded(order, minimal+"---\n"+strings.Replace(minimal, "web", "b", 1)))
		if m.Err() != nil || len(m.Pods) != 2 {
			t.Errorf("%v: %d pods, %v", order, len(m.Pods), m.Err())
		}
		reported := problemsOf(parsed(t, encoded(order, minimal+"#\u2028  hostNetwork: true\n")))
		if !strings.Contains(reported, "-:9:2: is the character U+2028") {
			t.Errorf("%v:\n%s", order, reported)
		}
		reported = problemsOf(parsed(t, encoded(order, minimal)+"a"))
		if !strings.Contains(reported, "is not valid UTF-16: save it as UTF-8") {
			t.Errorf("%v: cut inside a character:\n%s", order, reported)
		}
	}
}
