package objects

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
)

// TestSets checks that the set of an object is stored and is no change. It is not among its annotations, and a manifest
// cannot set it.
func TestSets(t *testing.T) {
	s := newStore(t)
	in := func(set string, all ...*podspec.Object) []*podspec.Object {
		for _, o := range all {
			o.Set = set
		}
		return all
	}
	put(t, s, in("", configMap("a"), secret("a", "hunter2"))...)
	if got := put(t, s, in("default/web", configMap("a"), secret("a", "hunter2"))...); strings.Contains(got, "configured") {
		t.Error(got)
	}
	for _, o := range []*podspec.Object{configMap("a"), secret("a", "")} {
		kept, err := s.Get(KeyOf(o))
		if err != nil || kept.Set != "default/web" || kept.Meta().Annotations != nil || kept.Meta().CreationTimestamp.Hour() > 14 {
			t.Errorf("%+v %v", kept, err)
		}
	}
	forged := configMap("a", "x", "1")
	forged.ConfigMap.Annotations = map[string]string{setAnnotation: "default/other", "mine": "1"}
	put(t, s, forged)
	if kept, err := s.Get(KeyOf(forged)); err != nil || kept.Set != "" || len(kept.Meta().Annotations) != 1 {
		t.Errorf("forged: %+v %v", kept, err)
	}
}

// TestOwners checks that the owner of an object is stored with its file, and that a new owner does not change the
// object. The owner is not among its annotations. The file of an object that is applied by hand is not stored.
func TestOwners(t *testing.T) {
	s := newStore(t)
	from := func(owner, file string, o *podspec.Object) *podspec.Object {
		o.Owner, o.Source = owner, file
		return o
	}
	for _, c := range []struct{ owner, file, want string }{
		{"", "/tmp/a", " "}, {"/pods", "/pods/a", "/pods /pods/a"}, {"/pods", "/pods/b", "/pods /pods/b"}, {"", "/tmp/a", " "},
	} {
		got := put(t, s, from(c.owner, c.file, configMap("a")))
		kept, err := s.Get(KeyOf(configMap("a")))
		if err != nil || kept.Owner+" "+kept.Source != c.want || kept.Meta().Annotations != nil || strings.Contains(got, "configured") {
			t.Errorf("%+v: %s %+v %v", c, got, kept, err)
		}
	}
}

// TestKeepsOwner checks that an object applied by hand from the file of an agent's source still belongs to the source.
func TestKeepsOwner(t *testing.T) {
	t.Chdir("/")
	for _, c := range []struct {
		ownerBefore, fileBefore, owner, file string
		want                                 bool
	}{
		{"/pods", "/pods/a", "", "/pods/a", true},
		{"/pods", "/pods/a", "", "pods/a", true},
		{"/pods", "/pods/a", "", "/pods/b", false},
		{"/pods", "/pods/a", "/other", "/pods/a", false},
		{"", "/pods/a", "", "/pods/a", false},
	} {
		if got := KeepsOwner(c.ownerBefore, c.fileBefore, c.owner, c.file); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	file, link := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	if !KeepsOwner("/pods", file, "", link) {
		t.Error("a link to the source's file is another file")
	}
}
