// Command mkimage packs a static program into an image archive that a container runtime can load. It is used by this
// repository's builds. The same program always gives the same archive.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

type options struct {
	name, binary, user, out string
	env                     list
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = append(*l, text)
	return nil
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "", "name and tag of the image")
	flag.StringVar(&o.binary, "binary", "", "static program that becomes the entrypoint")
	flag.StringVar(&o.user, "user", "", "user the image asks for")
	flag.StringVar(&o.out, "o", "", "archive to write")
	flag.Var(&o.env, "env", "NAME=value of the image's environment (repeatable)")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	tag, err := name.NewTag(o.name)
	if err != nil {
		return fmt.Errorf("reading the image's name: %w", err)
	}
	img, err := build(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return tarball.WriteToFile(o.out, tag, img)
}

// build returns an image with one layer that has the program and a writable /tmp.
func build(o options) (v1.Image, error) {
	entrypoint := "/" + filepath.Base(o.binary)
	layer, err := layerOf(o.binary, entrypoint)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("building the image: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("building the image: %w", err)
	}
	file.Architecture, file.OS = goruntime.GOARCH, "linux"
	if arch := os.Getenv("GOARCH"); arch != "" {
		file.Architecture = arch
	}
	file.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{Entrypoint: []string{entrypoint}, User: o.user, Env: o.env}
	return mutate.ConfigFile(img, file)
}

func layerOf(binary, entrypoint string) (v1.Layer, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	headers := []*tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: path.Join(".", entrypoint), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))},
	}
	for _, h := range headers {
		h.ModTime = time.Unix(0, 0)
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("writing the layer: %w", err)
		}
	}
	if _, err := w.Write(program); err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	})
}
