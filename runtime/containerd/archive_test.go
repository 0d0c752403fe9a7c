package containerd

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	goruntime "runtime"
	"testing"

	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ociArchive is an OCI image archive that a test builds.
type ociArchive struct {
	t     *testing.T
	index ocispec.Index
	order []string
	files map[string][]byte
}

func newArchive(t *testing.T) *ociArchive {
	t.Helper()
	return &ociArchive{t: t, files: map[string][]byte{}, index: ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}}}
}

func (a *ociArchive) add(name string, text []byte) {
	if _, twice := a.files[name]; !twice {
		a.order = append(a.order, name)
	}
	a.files[name] = text
}

func (a *ociArchive) json(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		a.t.Fatal(err)
	}
	return text
}

func blobPath(d digest.Digest) string { return "blobs/sha256/" + d.Encoded() }

// blob adds content under its digest.
func (a *ociArchive) blob(mediaType string, text []byte) ocispec.Descriptor {
	d := digest.FromBytes(text)
	a.add(blobPath(d), text)
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(text))}
}

// layerOf returns a layer with one file.
func (a *ociArchive) layerOf(text string) []byte {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	err := w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: int64(len(text))})
	if _, writeErr := w.Write([]byte(text)); err != nil || writeErr != nil || w.Close() != nil {
		a.t.Fatal(err, writeErr)
	}
	return layer.Bytes()
}

// parts adds the layer and the configuration of an image for an architecture.
func (a *ociArchive) parts(text, arch string) (layer, config ocispec.Descriptor) {
	layer = a.blob(ocispec.MediaTypeImageLayer, a.layerOf(text))
	config = a.blob(ocispec.MediaTypeImageConfig, a.json(ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: arch},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer.Digest}},
	}))
	return layer, config
}

// manifest adds an image that is identified by the content of its file.
func (a *ociArchive) manifest(text, arch string) ocispec.Descriptor {
	layer, config := a.parts(text, arch)
	d := a.blob(ocispec.MediaTypeImageManifest, a.json(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    config,
		Layers:    []ocispec.Descriptor{layer},
	}))
	d.Platform = &ocispec.Platform{OS: "linux", Architecture: arch}
	return d
}

// name adds an image to the archive's index with a name.
func (a *ociArchive) name(d ocispec.Descriptor, annotation, name string) {
	d.Annotations = map[string]string{annotation: name}
	a.index.Manifests = append(a.index.Manifests, d)
}

// image adds an image for this machine with names, and returns its digest.
func (a *ociArchive) image(text string, names ...string) digest.Digest {
	d := a.manifest(text, goruntime.GOARCH)
	for _, name := range names {
		a.name(d, ocispec.AnnotationRefName, name)
	}
	return d.Digest
}

// tar packs the archive, the index last.
func (a *ociArchive) tar() []byte {
	a.add(ocispec.ImageLayoutFile, a.json(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}))
	a.add(ocispec.ImageIndexFile, a.json(a.index))
	return a.pack()
}

func (a *ociArchive) pack() []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range a.order {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(a.files[name]))})
		if _, writeErr := w.Write(a.files[name]); err != nil || writeErr != nil {
			a.t.Fatal(err, writeErr)
		}
	}
	if err := w.Close(); err != nil {
		a.t.Fatal(err)
	}
	return out.Bytes()
}

// dockerArchive returns an archive in the format of `docker save` with one image.
func dockerArchive(t *testing.T, text string, tags ...string) []byte {
	t.Helper()
	a := newArchive(t)
	layer, config := a.parts(text, goruntime.GOARCH)
	a.add("manifest.json", a.json([]map[string]any{{
		"Config":   blobPath(config.Digest),
		"RepoTags": tags,
		"Layers":   []string{blobPath(layer.Digest)},
	}}))
	return a.pack()
}

func compressed(t *testing.T, text []byte, form compression.Compression) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := compression.CompressStream(&out, form)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
