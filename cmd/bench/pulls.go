package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/stream"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The images that are pulled: so many, each with a layer of so many bytes of its own.
const (
	pulledImages = 3
	pulledBytes  = 16 << 20
)

// pulls is a new pod of three containers whose images have to be fetched.
func (u *suite) pulls() *workload {
	blobs := filepath.Join(u.dir, "blobs")
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs))))
	w := &workload{
		name: "pull-3", what: "a new pod of three containers, whose three images of 16 MiB come from a registry on this machine",
		limits: []limit{{against: floorSideBySide, factor: 1.15}},
		end:    func(context.Context) error { server.Close(); return nil },
	}
	w.begin = func(ctx context.Context) error {
		if err := os.MkdirAll(blobs, 0o700); err != nil {
			return err
		}
		server.Start()
		images, err := u.push(strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			return err
		}
		path, f, err := u.pod(ctx, "pulls", shape{containers: len(images), images: images})
		if err != nil {
			return err
		}
		forget := func(ctx context.Context) error { return u.removeImages(ctx, images) }
		w.contenders = []contender{
			{name: podctlName, before: forget, run: u.timedPodctl("apply", path), after: u.do("delete", "--force", "pulls")},
			f.pulling(floorName, images, oneByOne, forget),
			f.pulling(floorSideBySide, images, sideBySide, forget),
		}
		return nil
	}
	return w
}

// push puts the images into a registry.
func (u *suite) push(host string) ([]string, error) {
	base, err := tarball.ImageFromPath(filepath.Join(u.o.images, "demo.tar"), nil)
	if err != nil {
		return nil, err
	}
	var images []string
	for i := range pulledImages {
		ref, err := name.NewTag(fmt.Sprintf("%s/podctl/pulled-%d:1", host, i), name.Insecure)
		if err != nil {
			return nil, err
		}
		img, err := grown(base, byte(i))
		if err == nil {
			err = remote.Write(ref, img)
		}
		if err != nil {
			return nil, err
		}
		images = append(images, ref.Name())
	}
	return images, nil
}

// grown is an image with one layer more. The layer is made while it is sent: memory that
// the bench used would be counted as that of the processes it starts.
func grown(base v1.Image, seed byte) (v1.Image, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(writeNoise(writer, seed)) }()
	return mutate.AppendLayers(base, stream.NewLayer(reader))
}

// writeNoise writes the archive of a layer that holds one file, which nothing can
// compress.
func writeNoise(to io.Writer, seed byte) error {
	archive := tar.NewWriter(to)
	header := &tar.Header{Name: "noise", Mode: 0o644, Size: pulledBytes, Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.CopyN(archive, rand.NewChaCha8([32]byte{seed}), pulledBytes); err != nil {
		return err
	}
	return archive.Close()
}

func (u *suite) removeImages(ctx context.Context, images []string) error {
	for _, image := range images {
		if _, err := u.img.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: image}}); err != nil {
			return err
		}
	}
	return nil
}

// pulling makes the pod with its pulls: before all the rest, or beside each other and
// the sandbox.
func (f *floor) pulling(name string, images []string, atATime int, forget step) contender {
	before := func(ctx context.Context) error { return errors.Join(forget(ctx), f.prepare(ctx)) }
	return contender{name: name, before: before, after: f.discard, run: func(ctx context.Context) (sample, error) {
		return clocked(func() error {
			if atATime == oneByOne {
				return errors.Join(f.pull(ctx, images, oneByOne), f.run(ctx, oneByOne))
			}
			group, groupCtx := errgroup.WithContext(ctx)
			group.Go(func() error { return f.pull(groupCtx, images, atATime) })
			group.Go(func() error { return f.runSandbox(groupCtx) })
			if err := group.Wait(); err != nil {
				return err
			}
			return f.startAll(ctx, atATime)
		})
	}}
}

func (f *floor) pull(ctx context.Context, images []string, limit int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i, image := range images {
		group.Go(func() error {
			reply, err := f.n.img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: image}, SandboxConfig: f.sandbox})
			f.containers[i].Image.Image = reply.GetImageRef()
			return err
		})
	}
	return group.Wait()
}
