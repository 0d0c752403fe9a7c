package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
)

// criNamespace is the containerd namespace of its CRI.
const criNamespace = "k8s.io"

// Store is a connection to containerd's own API for the images and containers of its CRI.
type Store struct {
	socket string
	client *client.Client
}

// NotContainerdError reports that an operation needs containerd's own API, which the runtime does not support.
type NotContainerdError struct{ Socket string }

// Error includes advice.
func (e *NotContainerdError) Error() string {
	return fmt.Sprintf("%s does not speak containerd's own API, and the CRI has no call for it: "+
		"use the runtime's own tool, "+
		"for CRI-O skopeo copy docker-archive:FILE containers-storage:NAME and the other way round", e.Socket)
}

// Is reports whether the target is errors.ErrUnsupported.
func (e *NotContainerdError) Is(target error) bool { return target == errors.ErrUnsupported }

// OpenStore prepares the connection to containerd, but sends nothing yet.
func OpenStore(socket string) (*Store, error) {
	c, err := client.New(socket, client.WithDefaultNamespace(criNamespace))
	if err != nil {
		return nil, fmt.Errorf("connecting to containerd at %s: %w", socket, err)
	}
	return &Store{socket: socket, client: c}, nil
}

// Close closes the connection.
func (s *Store) Close() error { return s.client.Close() }

// explain turns the answer of another runtime into a *NotContainerdError.
func (s *Store) explain(err error) error {
	if errdefs.IsNotImplemented(err) {
		return &NotContainerdError{Socket: s.socket}
	}
	return err
}

// Export writes images, given by their full names, as an OCI archive that docker can load too. An image for several
// platforms is written for this machine only.
func (s *Store) Export(ctx context.Context, w io.Writer, names []string) error {
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	opts := []archive.ExportOpt{archive.WithPlatform(platforms.DefaultStrict())}
	for _, name := range names {
		opts = append(opts, archive.WithImage(s.client.ImageService(), name))
	}
	return s.explain(s.client.Export(ctx, w, opts...))
}

// Untag removes names of images. A missing one is not an error.
func (s *Store) Untag(ctx context.Context, names []string) error {
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	for _, name := range names {
		if err := s.client.ImageService().Delete(ctx, name); err != nil && !errdefs.IsNotFound(err) {
			return s.explain(err)
		}
	}
	return nil
}

// Tag gives an image another name, even if another image has it.
func (s *Store) Tag(ctx context.Context, name, other string) error {
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	store := s.client.ImageService()
	img, err := store.Get(ctx, name)
	if err != nil {
		return s.explain(err)
	}
	img.Name = other
	if _, err = store.Create(ctx, img); errdefs.IsAlreadyExists(err) {
		_, err = store.Update(ctx, img)
	}
	return s.explain(err)
}

// Download is a part of an image during a download.
type Download struct {
	// Done and Total are in bytes. Total is zero if the registry did not report it.
	Done, Total int64
}

// Downloads returns the parts that are being written to containerd's content store, by name.
func (s *Store) Downloads(ctx context.Context) (map[string]Download, error) {
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	list, err := s.client.ContentStore().ListStatuses(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	found := map[string]Download{}
	for i := range list {
		found[list[i].Ref] = Download{Done: list[i].Offset, Total: list[i].Total}
	}
	return found, nil
}

// Written returns the bytes that a container has written to its layer, or zero if unknown.
func (s *Store) Written(ctx context.Context, containerID string) int64 {
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	c, err := s.client.ContainerService().Get(ctx, containerID)
	if err != nil {
		return 0
	}
	usage, err := s.client.SnapshotService(c.Snapshotter).Usage(ctx, c.SnapshotKey)
	if err != nil {
		return 0
	}
	return usage.Size
}

// Load imports an image archive and returns the names of the images.
func Load(ctx context.Context, socket string, archive io.Reader) ([]string, error) {
	s, err := OpenStore(socket)
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // the connection has done its work
	return s.Import(ctx, archive)
}
