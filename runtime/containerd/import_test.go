package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestNamesOfArchives checks that an image is loaded under a valid name, and under a digest only if it is its own.
func TestNamesOfArchives(t *testing.T) {
	own, other := digest.FromString("own"), digest.FromString("other")
	for _, c := range []struct{ annotation, given, want, refused string }{
		{images.AnnotationImageName, "registry.local/web:1", "registry.local/web:1", ""},
		{images.AnnotationImageName, "web", "docker.io/library/web:latest", ""},
		{images.AnnotationImageName, "registry.local/web@" + own.String(), "registry.local/web@" + own.String(), ""},
		{images.AnnotationImageName, "registry.local/web:1@" + own.String(), "registry.local/web@" + own.String(), ""},
		{images.AnnotationImageName, "registry.local/web@" + other.String(), "", "has the digest " + own.String()},
		{images.AnnotationImageName, "registry.local/web:1@" + other.String(), "", "has the digest " + own.String()},
		{images.AnnotationImageName, "registry.local/web@sha512:" + strings.Repeat("0", 128), "", "has the digest " + own.String()},
		{images.AnnotationImageName, own.String(), "", "has the form of an id"},
		{images.AnnotationImageName, other.Encoded(), "", "has the form of an id"},
		{images.AnnotationImageName, "docker.io/library/" + own.String(), "", "has the form of an id"},
		{images.AnnotationImageName, "index.docker.io/library/" + own.String(), "", "has the form of an id"},
		{images.AnnotationImageName, "62e51444c7e5:latest", "", "has the form of an id"},
		{images.AnnotationImageName, "62e51444c7e5", "", "has the form of an id"},
		{images.AnnotationImageName, "library/" + other.Encoded()[:20], "", "has the form of an id"},
		{images.AnnotationImageName, "library/" + other.Encoded() + ":1", "", "has the form of an id"},
		{images.AnnotationImageName, "docker.io/library/" + other.Encoded() + ":1", "", "has the form of an id"},
		{images.AnnotationImageName, "62e51444c7e5@" + own.String(), "", "has the form of an id"},
		{images.AnnotationImageName, "sha256:62e51444c7e5", "", "has the form of an id"},
		{images.AnnotationImageName, "62e51444c7e", "docker.io/library/62e51444c7e:latest", ""},
		{images.AnnotationImageName, "registry.local/62e51444c7e5:1", "registry.local/62e51444c7e5:1", ""},
		{images.AnnotationImageName, "Not A Name", "", "is not a valid name"},
		{images.AnnotationImageName, "web\x1b[2J", "", `is not a valid name`},
		{ocispec.AnnotationRefName, "registry.local/web:1", "registry.local/web:1", ""},
		{ocispec.AnnotationRefName, "registry.local/web@" + own.String(), "registry.local/web@" + own.String(), ""},
		{ocispec.AnnotationRefName, "registry.local/web:1@" + other.String(), "", "has the digest " + own.String()},
		{ocispec.AnnotationRefName, "registry.local/Web@" + other.String(), "", "has the digest " + own.String()},
		{ocispec.AnnotationRefName, "web@sha256:short", "", "has the digest " + own.String()},
		{ocispec.AnnotationRefName, own.String(), "", "has the form of an id"},
		{ocispec.AnnotationRefName, "62e51444c7e5:latest", "", "has the form of an id"},
		{ocispec.AnnotationRefName, "1.5", "", ""},
		{ocispec.AnnotationRefName, "registry.local/Not Good", "", ""},
		{"other", "registry.local/web:1", "", ""},
	} {
		name, err := nameOf(ocispec.Descriptor{Digest: own, Annotations: map[string]string{c.annotation: c.given}})
		if name != c.want && c.refused == "" || (err == nil) != (c.refused == "") ||
			(err != nil && !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s %q: %q, %v", c.annotation, c.given, name, err)
		}
		if err != nil && strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q moves the cursor", err)
		}
	}
}

func TestDuplicateNames(t *testing.T) {
	a := newArchive(t)
	a.image("one", "registry.local/web:1", "registry.local/web:1", "registry.local/other:1")
	if found, err := imagesOf(&a.index); err != nil || len(found) != 2 {
		t.Errorf("%v %v", found, err)
	}
	a.image("two", "registry.local/web:1")
	if _, err := imagesOf(&a.index); err == nil || !strings.Contains(err.Error(), "two images of the name registry.local/web:1") {
		t.Errorf("error %v", err)
	}
	a.index.Manifests = []ocispec.Descriptor{{Digest: "sha256:../../x"}}
	if _, err := imagesOf(&a.index); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("error %v", err)
	}
	if _, err := imagesOf(&ocispec.Index{}); !errors.Is(err, ErrNoNames) {
		t.Errorf("error %v", err)
	}
}

// nameStore stores the names of images, and fails at a given call.
type nameStore struct {
	images.Store
	names  map[string]digest.Digest
	failAt int
	// late is set if the failing call has an effect nevertheless.
	late  bool
	calls int
	// hook, if not nil, is called before each call.
	hook func()
}

var errStore = errors.New("the store failed")

func (s *nameStore) call(ctx context.Context, do func()) error {
	if s.hook != nil {
		s.hook()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls++
	if s.calls != s.failAt || s.late {
		do()
	}
	if s.calls == s.failAt {
		return errStore
	}
	return nil
}

func (s *nameStore) Get(ctx context.Context, name string) (img images.Image, err error) {
	found := true
	err = s.call(ctx, func() {
		img.Name = name
		img.Target.Digest, found = s.names[name]
	})
	if err == nil && !found {
		err = errdefs.ErrNotFound
	}
	return img, err
}

func (s *nameStore) Create(ctx context.Context, img images.Image) (images.Image, error) {
	exists := false
	err := s.call(ctx, func() {
		if _, exists = s.names[img.Name]; !exists {
			s.names[img.Name] = img.Target.Digest
		}
	})
	if exists {
		err = errdefs.ErrAlreadyExists
	}
	return img, err
}

func (s *nameStore) Update(ctx context.Context, img images.Image, fields ...string) (images.Image, error) {
	if !slices.Equal(fields, []string{"target"}) {
		return img, fmt.Errorf("labels would be lost: %v", fields)
	}
	return img, s.call(ctx, func() { s.names[img.Name] = img.Target.Digest })
}

func (s *nameStore) Delete(ctx context.Context, name string, _ ...images.DeleteOpt) error {
	return s.call(ctx, func() { delete(s.names, name) })
}

// TestAllNamesOrNone checks that after a failure at any call, existing names are unchanged and there are no new ones.
func TestAllNamesOrNone(t *testing.T) {
	var all []images.Image
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, images.Image{Name: name, Target: ocispec.Descriptor{Digest: digest.Digest("new " + name)}})
	}
	before := map[string]digest.Digest{"b": "old b", "d": "old d", "e": "old e"}
	after := map[string]digest.Digest{"a": "new a", "b": "new b", "c": "new c", "d": "new d", "e": "old e"}
	for _, late := range []bool{false, true} {
		for failAt := range 9 {
			store := &nameStore{names: maps.Clone(before), failAt: failAt, late: late}
			err, want := nameImages(t.Context(), store, all), before
			if failAt == 0 {
				want = after
			}
			if (err == nil) != (failAt == 0) || !maps.Equal(store.names, want) {
				t.Errorf("failing at call %d, done %t: %v, %v", failAt, late, err, store.names)
			}
		}
	}
	// If the user interrupts before or in between, either no name or all names are set.
	for at := range 9 {
		ctx, cancel := context.WithCancel(t.Context())
		store := &nameStore{names: maps.Clone(before)}
		store.hook = func() {
			if store.calls == at-1 {
				cancel()
			}
		}
		if at == 0 {
			cancel()
		}
		err, want := nameImages(ctx, store, all), after
		if at == 0 {
			want = before
		}
		if (err == nil) != (at > 0) || !maps.Equal(store.names, want) {
			t.Errorf("interrupted before call %d: %v, %v", at, err, store.names)
		}
		cancel()
	}
	// A name that another program sets meanwhile stays.
	store := &nameStore{names: maps.Clone(before)}
	store.hook = func() {
		if store.calls == 5 {
			store.names["c"] = "his"
		}
	}
	if err := nameImages(t.Context(), store, all); !errdefs.IsAlreadyExists(err) ||
		store.names["c"] != "his" || store.names["a"] != "" || store.names["b"] != "old b" {
		t.Errorf("%v %v", err, store.names)
	}
}

// TestDecompressRunsNoProgram checks that gzip is decompressed in this process, not by an unpigz in PATH.
func TestDecompressRunsNoProgram(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"unpigz", "igzip"} {
		script := "#!/bin/sh\n: >" + dir + "/ran\nexec gzip -d\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil { // it is executed
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	text := []byte(strings.Repeat("archive ", 1000))
	for form, packed := range map[string][]byte{
		"plain": text,
		"gzip":  compressed(t, text, compression.Gzip),
		"zstd":  compressed(t, text, compression.Zstd),
	} {
		r, err := decompress(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(form, err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, %v", form, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(form, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a program was run")
	}
	if _, err := decompress(bytes.NewReader([]byte("\x1f\x8b\x08cut off"))); err == nil {
		t.Error("half a header was taken")
	}
}
