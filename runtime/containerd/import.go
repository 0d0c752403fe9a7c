package containerd

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrNoNames reports an archive without a named image.
var ErrNoNames = errors.New("none of its images has a name; " +
	"write the archive with one (docker save NAME, skopeo copy … oci-archive:FILE:NAME:TAG)")

// importLease is how long containerd keeps the content of an archive without an image, if podctl is killed meanwhile.
const importLease = 24 * time.Hour

// Import reads an image archive in docker's or the OCI's format, compressed or not, and returns the names of its
// images. The images get their names after all of them are unpacked. A failed import therefore adds no name and changes
// none.
func (s *Store) Import(ctx context.Context, r io.Reader) (names []string, err error) {
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	// Check before reading the stream, to avoid sending gigabytes to another runtime.
	if _, err = s.client.Version(ctx); err != nil {
		return nil, s.explain(errgrpc.ToNative(err))
	}
	ctx, release, err := s.lease(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking a lease on the content: %w", err)
	}
	defer func() { release(err == nil) }()
	found, err := s.receive(ctx, r)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if err = s.unpack(ctx, found[i]); err != nil {
			return nil, err
		}
		names = append(names, found[i].Name)
	}
	return names, nameImages(ctx, s.client.ImageService(), found)
}

// lease keeps containerd from removing content that no image needs yet. release removes unwanted content before it
// returns, so that it is not reused for the next archive. A failed release does no harm, because the lease expires.
func (s *Store) lease(ctx context.Context) (leased context.Context, release func(wanted bool), err error) {
	manager := s.client.LeasesService()
	lease, err := manager.Create(ctx, leases.WithRandomID(), leases.WithExpiration(importLease))
	if err != nil {
		return nil, nil, err
	}
	release = func(wanted bool) {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		var opts []leases.DeleteOpt
		if !wanted {
			opts = append(opts, leases.SynchronousDelete)
		}
		manager.Delete(deleting, lease, opts...) //nolint:errcheck // as said above
	}
	return leases.WithLease(ctx, lease.ID), release, nil
}

// receive writes the content of an archive to the store, and returns its images with checked names.
func (s *Store) receive(ctx context.Context, r io.Reader) ([]images.Image, error) {
	plain, err := decompress(r)
	if err != nil {
		return nil, notArchive(err)
	}
	defer plain.Close() //nolint:errcheck // a stream that was only read
	store := s.client.ContentStore()
	top, err := archive.ImportIndex(ctx, store, plain)
	if err != nil {
		return nil, notArchive(err)
	}
	index, err := readIndex(ctx, store, top)
	if err != nil {
		return nil, err
	}
	found, err := imagesOf(index)
	if err != nil {
		return nil, err
	}
	return found, keepChildren(ctx, store, top)
}

// decompress decompresses gzip or zstd. It decompresses gzip in this process, because the library would run an external
// program from PATH.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(r)
	head, err := buffered.Peek(10)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if compression.DetectCompression(head) == compression.Gzip {
		return gzip.NewReader(buffered)
	}
	return compression.DecompressStream(buffered)
}

// maxIndex limits the index of an archive, in bytes.
const maxIndex = 8 << 20

func readIndex(ctx context.Context, store content.Provider, top ocispec.Descriptor) (*ocispec.Index, error) {
	if top.Size > maxIndex {
		return nil, fmt.Errorf("its index.json is larger than %d bytes", maxIndex)
	}
	text, err := content.ReadBlob(ctx, store, top)
	if err != nil {
		return nil, fmt.Errorf("reading its index: %w", err)
	}
	var index ocispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("its index.json is damaged: %w", err)
	}
	return &index, nil
}

// imagesOf returns the named images of an archive. It refuses misleading names.
func imagesOf(index *ocispec.Index) ([]images.Image, error) {
	var found []images.Image
	for _, target := range index.Manifests {
		if err := target.Digest.Validate(); err != nil {
			return nil, fmt.Errorf("its index.json is damaged: %w: %q", err, target.Digest)
		}
		name, err := nameOf(target)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(found, func(img images.Image) bool { return img.Name == name })
		switch {
		case name == "":
		case !isForThisMachine(target.Platform):
			// Containerd would set the name and then remove the content.
			return nil, fmt.Errorf("%s is for %s, and this machine is %s",
				name, platforms.Format(*target.Platform), platforms.DefaultString())
		case i < 0:
			found = append(found, images.Image{Name: name, Target: target})
		case found[i].Target.Digest != target.Digest:
			return nil, fmt.Errorf("it has two images of the name %s, %s and %s",
				name, found[i].Target.Digest, target.Digest)
		}
	}
	if len(found) == 0 {
		return nil, ErrNoNames
	}
	return found, nil
}

// isForThisMachine reports whether an image can run on this machine, as far as the archive declares it.
func isForThisMachine(p *ocispec.Platform) bool {
	return p == nil || platforms.Default().Match(*p)
}

// nameOf returns the full name of an image in an archive, or an empty string. A name with a digest must have the
// image's digest. A name in the form of an image id is refused.
func nameOf(target ocispec.Descriptor) (string, error) {
	given := target.Annotations[images.AnnotationImageName]
	name := fullName(given)
	switch {
	case given == "":
		given = target.Annotations[ocispec.AnnotationRefName]
		// It may be a tag alone, or any other text.
		if !strings.ContainsAny(given, "/:@") {
			return "", nil
		}
		if name = fullName(given); name == "" && !strings.Contains(given, "@") {
			return "", nil
		}
	case name == "" && !isID(given):
		return "", fmt.Errorf("it names an image %q, which is not a valid name", given)
	}
	if isID(given) || isID(name) {
		return "", fmt.Errorf("it names an image %q, which has the form of an id", given)
	}
	return name, checkDigest(given, name, target)
}

// isID reports whether a name looks like an image id, complete or shortened as tools show it, with any tag or digest
// after it. A request for that id would otherwise find the image with this name.
func isID(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/"), "library/")
	_, err := digest.Parse(name)
	return err == nil || regexp.MustCompile(`^(sha256:)?[0-9a-f]{12,64}([:@].*)?$`).MatchString(name)
}

// checkDigest refuses a name with another image's digest.
func checkDigest(given, name string, target ocispec.Descriptor) error {
	_, claimed, has := strings.Cut(given, "@")
	if has && (name == "" || claimed != target.Digest.String()) {
		return fmt.Errorf("it names an image %q, but that image has the digest %s: nothing was loaded; "+
			"the archive may be an attempt to pass it off as another image", given, target.Digest)
	}
	return nil
}

// fullName returns the name under which the CRI looks for an image, or an empty string for an invalid name.
func fullName(name string) string {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return ""
	}
	return ref.String()
}

// keepChildren makes containerd keep the parts of all images as long as the whole. Parts for other platforms may be
// missing.
func keepChildren(ctx context.Context, store content.Store, top ocispec.Descriptor) error {
	children := func(ctx context.Context, part ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		parts, err := images.Children(ctx, store, part)
		if errdefs.IsNotFound(err) && part.Digest != top.Digest {
			return nil, images.ErrSkipDesc
		}
		return parts, err
	}
	handler := images.SetChildrenLabels(store,
		images.FilterPlatforms(images.HandlerFunc(children), platforms.Default()))
	if err := images.WalkNotEmpty(ctx, handler, top); err != nil {
		return fmt.Errorf("it has no image for this machine: %w", err)
	}
	return nil
}

// unpack prepares the file system of an image that has no name yet.
func (s *Store) unpack(ctx context.Context, img images.Image) error {
	err := client.NewImage(s.client, img).Unpack(ctx, "")
	switch {
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%s is incomplete, or is not for this machine: %w", img.Name, err)
	case err != nil:
		return fmt.Errorf("unpacking %s: %w", img.Name, err)
	}
	return nil
}

// notArchive explains that a file is not an image archive.
func notArchive(err error) error {
	for _, sign := range []error{tar.ErrHeader, gzip.ErrHeader, gzip.ErrChecksum, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, sign) {
			return fmt.Errorf("it is not an image archive, or is truncated: %w", err)
		}
	}
	if strings.Contains(err.Error(), "unrecognized image format") {
		return fmt.Errorf("it is a tar archive, but not in the format of docker or the OCI: %w", err)
	}
	return err
}
