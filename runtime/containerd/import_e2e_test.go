//go:build e2e

package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// realNode starts a containerd for the test. podctl runs podctl on it.
func realNode(t *testing.T) (store *Store, podctl func(ctx context.Context, args ...string) error) {
	t.Helper()
	containerd := os.Getenv("PODCTL_CONTAINERD")
	if containerd == "" {
		t.Fatal("PODCTL_CONTAINERD is not set; run these tests by `make e2e`")
	}
	state, err := os.MkdirTemp("/tmp", "podctl-import-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	podctl = func(ctx context.Context, args ...string) error {
		all := append([]string{"--state-dir", state, "--log-root", filepath.Join(state, "logs")}, args...)
		out, runErr := exec.CommandContext(ctx, os.Getenv("PODCTL_BIN"), all...).CombinedOutput()
		if runErr != nil {
			return fmt.Errorf("podctl %v: %w\n%s", args, runErr, out)
		}
		return nil
	}
	t.Cleanup(func() {
		if downErr := errors.Join(podctl(context.WithoutCancel(t.Context()), "node", "down"), os.RemoveAll(state)); downErr != nil {
			t.Error(downErr)
		}
	})
	if err = podctl(t.Context(), "node", "up", "--containerd", containerd); err != nil {
		t.Fatal(err)
	}
	store, err = OpenStore(filepath.Join(state, "node", "containerd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, podctl
}

// TestImport loads misleading archives into a real containerd.
func TestImport(t *testing.T) {
	store, _ := realNode(t)
	// This image exists before, and every refused archive would change it.
	kept := newArchive(t)
	kept.image("kept", "registry.local/kept:1")
	if names, err := store.Import(t.Context(), bytes.NewReader(kept.tar())); err != nil || fmt.Sprint(names) != "[registry.local/kept:1]" {
		t.Fatal(names, err)
	}
	t.Run("good", func(t *testing.T) { testGoodArchives(t, store) })
	t.Run("forged", func(t *testing.T) { testManipulatedArchives(t, store) })
	t.Run("broken", func(t *testing.T) { testBrokenArchives(t, store) })
	t.Run("interrupted", func(t *testing.T) { testInterruptedImports(t, store) })
}

// named maps the names in the store to digests. It omits ids, which the CRI adds as names with a delay.
func named(t *testing.T, s *Store) map[string]digest.Digest {
	t.Helper()
	list, err := s.client.ImageService().List(namespaces.WithNamespace(t.Context(), criNamespace))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]digest.Digest{}
	for _, img := range list {
		if !strings.HasPrefix(img.Name, "sha256:") {
			names[img.Name] = img.Target.Digest
		}
	}
	return names
}

// refused loads an archive that must leave nothing behind.
func refused(t *testing.T, s *Store, what string, r io.Reader, wantMessage string) {
	t.Helper()
	before := named(t, s)
	if names, err := s.Import(t.Context(), r); err == nil || len(names) > 0 || !strings.Contains(err.Error(), wantMessage) {
		t.Errorf("%s: %v, %v", what, names, err)
	}
	if after := named(t, s); !maps.Equal(before, after) {
		t.Errorf("%s: the names were %v and are %v", what, before, after)
	}
}

func testGoodArchives(t *testing.T, s *Store) {
	twice := newArchive(t)
	content := twice.image("twice", "registry.local/first:1", "registry.local/second:1")
	self := newArchive(t)
	own := self.image("by digest")
	self.name(self.manifest("by digest", goruntime.GOARCH), images.AnnotationImageName, "registry.local/self:1@"+own.String())
	several := newArchive(t)
	other := several.manifest("another machine's", "riscv64")
	// Its parts are not in the archive.
	several.files, several.order = map[string][]byte{}, nil
	index := several.blob(ocispec.MediaTypeImageIndex, several.json(ocispec.Index{
		Manifests: []ocispec.Descriptor{other, several.manifest("this machine's", goruntime.GOARCH)},
	}))
	several.name(index, ocispec.AnnotationRefName, "registry.local/several:1")
	for what, c := range map[string]struct {
		archive []byte
		want    map[string]digest.Digest
	}{
		"two names on one content": {twice.tar(), map[string]digest.Digest{
			"registry.local/first:1":  content,
			"registry.local/second:1": content,
		}},
		"the image's own digest":  {self.tar(), map[string]digest.Digest{"registry.local/self@" + own.String(): own}},
		"parts of others missing": {several.tar(), map[string]digest.Digest{"registry.local/several:1": index.Digest}},
		"docker's form": {dockerArchive(t, "docker", "registry.local/docker:1"), map[string]digest.Digest{
			"registry.local/docker:1": "",
		}},
		"docker's form, compressed": {
			compressed(t, dockerArchive(t, "docker", "registry.local/docker:2"), compression.Gzip),
			map[string]digest.Digest{"registry.local/docker:2": ""},
		},
		"the OCI's, compressed": {compressed(t, twice.tar(), compression.Zstd), map[string]digest.Digest{
			"registry.local/first:1": content,
		}},
	} {
		if _, err := s.Import(t.Context(), bytes.NewReader(c.archive)); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		after := named(t, s)
		for name, want := range c.want {
			if got, ok := after[name]; !ok || (want != "" && got != want) {
				t.Errorf("%s: %s is %q, want %q", what, name, got, want)
			}
		}
	}
}

func testManipulatedArchives(t *testing.T, s *Store) {
	trusted := newArchive(t)
	known := trusted.image("kept")
	for what, forge := range map[string]struct {
		annotation, name, wantMessage string
	}{
		"the digest of another image":    {ocispec.AnnotationRefName, "registry.local/trusted@" + known.String(), "has the digest"},
		"the same by containerd's name":  {images.AnnotationImageName, "registry.local/trusted@" + known.String(), "has the digest"},
		"a tag and another's digest":     {images.AnnotationImageName, "registry.local/kept:1@" + known.String(), "has the digest"},
		"the id of another image":        {images.AnnotationImageName, known.String(), "form of an id"},
		"the same without its algorithm": {images.AnnotationImageName, known.Encoded(), "form of an id"},
		"a name that is none":            {images.AnnotationImageName, "registry.local/KEPT:1", "not a valid name"},
	} {
		a := newArchive(t)
		a.image("evil", "registry.local/evil:1", "registry.local/kept:1")
		a.name(a.manifest("evil", goruntime.GOARCH), forge.annotation, forge.name)
		refused(t, s, what, bytes.NewReader(a.tar()), forge.wantMessage)
		refused(t, s, what+", compressed", bytes.NewReader(compressed(t, a.tar(), compression.Gzip)), forge.wantMessage)
	}
	refused(t, s, "docker's form", bytes.NewReader(
		dockerArchive(t, "evil", "registry.local/kept:1", "registry.local/trusted@"+known.String()),
	), "has the digest")
	refused(t, s, "an id in docker's form",
		bytes.NewReader(dockerArchive(t, "evil", "registry.local/kept:1", known.String())), "form of an id")
	a := newArchive(t)
	a.image("one", "registry.local/kept:1")
	a.image("two", "registry.local/kept:1")
	refused(t, s, "one name twice", bytes.NewReader(a.tar()), "two images of the name")
}

func testBrokenArchives(t *testing.T, s *Store) {
	broken := func(damage func(a *ociArchive)) []byte {
		a := newArchive(t)
		a.image("new", "registry.local/new:1", "registry.local/kept:1")
		damage(a)
		return a.tar()
	}
	second := func(a *ociArchive, layer []byte, diffID digest.Digest) {
		blob := a.blob(ocispec.MediaTypeImageLayer, layer)
		config := a.blob(ocispec.MediaTypeImageConfig, a.json(ocispec.Image{
			Platform: ocispec.Platform{OS: "linux", Architecture: goruntime.GOARCH},
			RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{diffID}},
		}))
		manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{blob}}
		manifest.SchemaVersion = 2
		a.name(a.blob(ocispec.MediaTypeImageManifest, a.json(manifest)), ocispec.AnnotationRefName, "registry.local/second:9")
	}
	for what, damage := range map[string]func(a *ociArchive){
		"a layer that is none":        func(a *ociArchive) { second(a, []byte("no tar"), digest.FromString("no tar")) },
		"a layer of another's digest": func(a *ociArchive) { second(a, a.layerOf("x"), digest.FromString("y")) },
		"a manifest that is none": func(a *ociArchive) {
			a.name(a.blob(ocispec.MediaTypeImageManifest, []byte("{")), ocispec.AnnotationRefName, "registry.local/second:9")
		},
		"an image that is absent": func(a *ociArchive) {
			absent := ocispec.Descriptor{
				MediaType: ocispec.MediaTypeImageManifest,
				Digest:    digest.FromString("absent"),
				Size:      9,
			}
			a.name(absent, ocispec.AnnotationRefName, "registry.local/second:9")
		},
		"another machine's image": func(a *ociArchive) {
			a.name(a.manifest("other", "riscv64"), ocispec.AnnotationRefName, "registry.local/second:9")
		},
		"bytes that are not the digest's": func(a *ociArchive) {
			d := a.manifest("swapped", goruntime.GOARCH)
			layer, _ := a.parts("swapped", goruntime.GOARCH)
			a.files[blobPath(layer.Digest)] = a.layerOf("evil")
			a.name(d, ocispec.AnnotationRefName, "registry.local/second:9")
		},
		"a manifest of other bytes": func(a *ociArchive) {
			d := a.manifest("swapped2", goruntime.GOARCH)
			a.files[blobPath(d.Digest)] = a.files[blobPath(a.index.Manifests[0].Digest)]
			a.name(d, ocispec.AnnotationRefName, "registry.local/second:9")
		},
		"a digest that is a path": func(a *ociArchive) { a.index.Manifests[0].Digest = "sha256:../../../etc/passwd" },
	} {
		refused(t, s, what, bytes.NewReader(broken(damage)), "")
	}
	whole := newArchive(t)
	whole.image("cut "+strings.Repeat("off ", 100_000), "registry.local/whole:1", "registry.local/kept:1")
	text := whole.tar()
	for _, form := range []compression.Compression{compression.Uncompressed, compression.Gzip} {
		packed := compressed(t, text, form)
		for part := 1; part < 8; part++ {
			refused(t, s, fmt.Sprintf("%d eighths", part), bytes.NewReader(packed[:len(packed)*part/8]), "")
		}
	}
	// Leftovers of the first imports do not affect the next one.
	if names, err := s.Import(t.Context(), bytes.NewReader(text)); err != nil || len(names) != 2 {
		t.Errorf("the whole archive: %v, %v", names, err)
	}
}

// interrupting cancels the context after a number of bytes.
type interrupting struct {
	io.Reader
	left   int
	cancel context.CancelFunc
}

func (r *interrupting) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p[:min(len(p), 512)])
	if r.left -= n; r.left <= 0 {
		r.cancel()
	}
	return n, err
}

func testInterruptedImports(t *testing.T, s *Store) {
	a := newArchive(t)
	a.image("interrupted", "registry.local/interrupted:1", "registry.local/kept:1")
	text := a.tar()
	before := named(t, s)
	for at := 0; at <= len(text); at += 1024 {
		ctx, cancel := context.WithCancel(t.Context())
		names, err := s.Import(ctx, &interrupting{bytes.NewReader(text), at, cancel})
		if err == nil || len(names) > 0 {
			t.Errorf("interrupted after %d bytes: %v %v", at, names, err)
		}
		cancel()
	}
	if after := named(t, s); !maps.Equal(before, after) {
		t.Errorf("the names were %v and are %v", before, after)
	}
}
