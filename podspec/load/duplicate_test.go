package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
)

const withConfig = minimal +
	"    envFrom: [{configMapRef: {name: c}}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n" +
	"data: {a: first}\n"

func source(name, text string) input.Source { return input.Source{Name: name, Text: []byte(text)} }

// TestDuplicatesAreOmitted checks that the first of two objects with the same name, or of two pods with the same uid,
// is used. All other objects are accepted.
func TestDuplicatesAreOmitted(t *testing.T) {
	derived := podspec.UID("default", "web")
	other := strings.Replace(minimal, "name: web", "name: other", 1)
	for name, c := range map[string]struct{ second, problem string }{
		"a name": {strings.Replace(minimal, "app:1", "app:2", 1), "Pod default/web is given twice, first in a:4"},
		"a ConfigMap": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: second}\n",
			"ConfigMap default/c is given twice, first in a:13",
		},
		"a uid": {
			strings.Replace(other, "name: other", fmt.Sprintf("name: other\n  uid: %s", derived), 1),
			fmt.Sprintf("the uid %q is given twice, first in a:4", derived),
		},
		"a name, two uids": {
			strings.Replace(minimal, "name: web", "name: web\n  uid: other", 1),
			"Pod default/web is given twice, first in a:4",
		},
	} {
		third := strings.Replace(minimal, "name: web", "name: third", 1)
		m := Parse(source("a", withConfig), source("b", c.second+"---\n"+third))
		if len(m.Problems) != 1 || !m.Problems[0].Duplicate || m.Problems[0].Detail != c.problem ||
			m.Problems[0].File != "b" || m.Err() == nil {
			t.Errorf("%s: %v", name, m.Problems)
		}
		if len(m.Pods) != 2 || m.Pods[0].Source != "a" || m.Pods[0].Objects.ConfigMaps["c"].Data["a"] != "first" ||
			m.Pods[1].Pod.Name != "third" {
			t.Errorf("%s: pods %v", name, m.Pods)
		}
	}
	apart := strings.Replace(minimal, "name: web", "name: web\n  namespace: b", 1)
	if m := Parse(source("a", minimal), source("b", apart)); len(m.Problems) > 0 {
		t.Errorf("problems with one name in two namespaces: %v", m.Problems)
	}
}

// TestTotalSizeLimit checks that a limit for all texts together is reported as such.
func TestTotalSizeLimit(t *testing.T) {
	many := repeat(document.MaxDocuments, func(i int) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	})
	large := source("a", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: "+strings.Repeat("x", 900_000)+"}\n")
	refers := source("b", minimal+"  volumes:\n"+repeat(300, func(i int) string {
		return fmt.Sprintf("  - {name: v%d, configMap: {name: c}}\n", i)
	}))
	for name, m := range map[string]*Manifest{
		"documents":            Parse(source("a", many), source("b", minimal)),
		"objects of templates": Parse(large, refers),
	} {
		found := false
		for _, p := range m.Problems {
			found = found || p.Limit && p.File == "b"
		}
		if !found {
			t.Errorf("%s: no problem has Limit set: %v", name, m.Problems)
		}
	}
	for _, p := range parsed(t, "kind: Pod\n").Problems {
		if p.Limit || p.Duplicate {
			t.Errorf("%v has Limit set", p)
		}
	}
}

// TestLoaderParse checks that texts are completed with stored objects.
func TestLoaderParse(t *testing.T) {
	failed := errors.New("the disk is gone")
	l := Loader{Stored: func(d *podspec.Desired) (*podspec.Desired, []podspec.ObjectName, error) { return d, nil, failed }}
	if _, err := l.Parse(source("a", minimal)); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	l.Stored = nil
	if m, err := l.Parse(source("a", minimal)); err != nil || len(m.Pods) != 1 {
		t.Errorf("%v", err)
	}
}
