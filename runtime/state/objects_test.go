package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
)

// TestObjectsAreKept checks that written objects are read and listed until they are removed, that their modes protect
// Secrets, and that no files are left.
func TestObjectsAreKept(t *testing.T) {
	s := newLayout(t).Objects()
	long := strings.Repeat("n", 253)
	keys := []ObjectKey{
		{"default", podspec.KindConfigMap, "web"},
		{"default", podspec.KindClaim, "web"},
		{"default", podspec.KindSecret, "web"},
		{"other", podspec.KindConfigMap, long},
	}
	slices.SortFunc(keys, ObjectKey.Compare)
	for i, key := range keys {
		for _, text := range []string{"old", key.String()} {
			if err := s.Write(key, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		path, err := s.Path(key)
		if err != nil {
			t.Fatal(err)
		}
		wantMode(t, path, 0o600)
		wantMode(t, filepath.Dir(path), os.ModeDir|0o700)
		if found, err := s.List(); err != nil || !slices.Equal(found, keys[:i+1]) {
			t.Errorf("%v %v", found, err)
		}
	}
	for i, key := range keys {
		if text, err := s.Read(key); err != nil || string(text) != key.String() {
			t.Errorf("%s: %q %v", key, text, err)
		}
		if err := errors.Join(s.Remove(key), s.Remove(key)); err != nil {
			t.Error(err)
		}
		if text, err := s.Read(key); err != nil || text != nil {
			t.Errorf("%s after its removal: %q %v", key, text, err)
		}
		if found, err := s.List(); err != nil || !slices.Equal(found, keys[i+1:]) {
			t.Errorf("%v %v", found, err)
		}
	}
	if left := names(t, s.dir()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestObjectNamesThatArePathsAreRefused checks that paths and reserved names are refused.
func TestObjectNamesThatArePathsAreRefused(t *testing.T) {
	s := newLayout(t).Objects()
	victim := victimTree(t)
	unchanged := wantUnchanged(t, victim)
	for _, key := range []ObjectKey{
		{"default", podspec.KindSecret, "../../../" + victim},
		{"..", podspec.KindSecret, "a"},
		{"default", podspec.KindSecret, ".a"},
		{"default", podspec.KindSecret, ""},
		{"", podspec.KindSecret, "a"},
		{"default", "Pod", "a"},
		{"default", "../x", "a"},
		{"a_b", podspec.KindSecret, "a"},
	} {
		_, readErr := s.Read(key)
		for what, err := range map[string]error{"write": s.Write(key, []byte("x")), "read": readErr, "remove": s.Remove(key)} {
			if refused := (*NameError)(nil); !errors.As(err, &refused) {
				t.Errorf("%s %+v: %v", what, key, err)
			}
		}
	}
	unchanged()
}

// TestObjectsThatAreLinks checks that nothing is read or written through a link in place of an object or a directory of
// objects.
func TestObjectsThatAreLinks(t *testing.T) {
	l := newLayout(t)
	s, key := l.Objects(), ObjectKey{"default", podspec.KindSecret, "a"}
	victim := victimTree(t)
	unchanged := wantUnchanged(t, victim)
	if err := errors.Join(
		l.Prepare(),
		os.MkdirAll(s.dir("default", "secrets"), 0o700),
		os.Symlink(filepath.Join(victim, "file"), s.dir("default", "secrets", "a")),
	); err != nil {
		t.Fatal(err)
	}
	if text, err := s.Read(key); err == nil {
		t.Errorf("through a link: %q", text)
	}
	if err := s.Write(key, []byte("mine")); err != nil {
		t.Error(err)
	}
	if text, err := s.Read(key); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
	if err := os.Chmod(s.dir("default", "secrets", "a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(key); err == nil {
		t.Error("a file that others can read is taken for a Secret")
	}
	unchanged()
}

// TestWhenObjectsChanged checks that each write and each removal advances ChangedAt.
func TestWhenObjectsChanged(t *testing.T) {
	l := Layout{Root: t.TempDir()}
	if at := l.Objects().ChangedAt(); !at.IsZero() {
		t.Errorf("without any: %v", at)
	}
	key := ObjectKey{Kind: podspec.KindConfigMap, Namespace: "default", Name: "a"}
	if err := l.Objects().Write(key, []byte("{}")); err != nil || l.Objects().ChangedAt().IsZero() {
		t.Fatal(err)
	}
	back := time.Now().Add(-time.Hour)
	dir := l.Objects().dir("default", "configmaps")
	for _, change := range []func() error{
		func() error { return l.Objects().Write(key, []byte(`{"data":{}}`)) },
		func() error {
			return l.Objects().Write(ObjectKey{Kind: podspec.KindConfigMap, Namespace: "default", Name: "b"}, []byte("{}"))
		},
		func() error { return l.Objects().Remove(key) },
	} {
		for _, one := range []string{l.Objects().dir(), l.Objects().dir("default"), dir} {
			if err := os.Chtimes(one, back, back); err != nil {
				t.Fatal(err)
			}
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if at := l.Objects().ChangedAt(); !at.After(back) {
			t.Errorf("a change is not seen: %v", at)
		}
	}
}

// TestListDuringRemoval checks that removing an object with its directories during a list hides no other object.
func TestListDuringRemoval(t *testing.T) {
	s := newLayout(t).Objects()
	kept, gone := ObjectKey{"z", podspec.KindSecret, "a"}, ObjectKey{"a", podspec.KindSecret, "a"}
	if err := s.Write(kept, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		var err error
		for range 300 {
			err = errors.Join(err, s.Write(gone, nil), s.Remove(gone))
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		if keys, err := s.List(); err != nil || !slices.Contains(keys, kept) {
			t.Fatalf("objects are %v %v", keys, err)
		}
	}
}
