package load

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
)

// FuzzLoad loads arbitrary manifests. Each problem must have a position and a text of one line, and an accepted pod
// must be the same after it was stored in a file.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		minimal, "a: &a [*a]\n", "a: [b, {c: &x d}, *x]\n", "? {a: b}\n: c\n", "{<<: [a, b], a: !!binary x}\n---\n...\n",
		minimal + "  <<: &m {schedulerName: zz}\n  volumes: [{name: &n hostname, <<: {emptyDir: {}}}]\n  *n : h\n",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\ndata: {c: ZA==}\n---\n" +
			strings.Replace(minimal, "    image:",
				"    envFrom: [{secretRef: {name: a}}]\n    resources: {limits: {cpu: 1}}\n    image:", 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m := Parse(input.Source{Name: "fuzz", Text: text})
		for _, p := range m.Problems {
			if p.Detail == "" || p.File != "fuzz" || p.Line < 1 || strings.Contains(p.String(), "\n") {
				t.Errorf("problem without a position or text, or with two lines: %+v", p)
			}
		}
		for _, n := range m.NoEffect {
			if n.Detail == "" || n.Line < 1 {
				t.Errorf("note without a position or text: %+v", n)
			}
		}
		if m.Err() == nil {
			for _, d := range m.Pods {
				sameAfterAFile(t, d)
			}
		}
	})
}

func sameAfterAFile(t *testing.T, d *podspec.Desired) {
	t.Helper()
	first, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var kept podspec.Desired
	if err = json.Unmarshal(first, &kept); err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(&kept)
	if err != nil || !bytes.Equal(first, second) || kept.Check() != nil {
		t.Errorf("%v %v\n%s\n%s", err, kept.Check(), first, second)
	}
}
