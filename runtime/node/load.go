package node

import (
	"context"
	"fmt"
	"os"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// criNamespace is where containerd keeps what belongs to its CRI.
const criNamespace = "k8s.io"

// Load imports an image archive, of docker's or the OCI's form, through
// containerd's own API: the CRI has no call for it. It returns the names of the
// images.
func Load(ctx context.Context, socket, archive string) ([]string, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, fmt.Errorf("loading images: %w", err)
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	c, err := client.New(socket, client.WithDefaultNamespace(criNamespace))
	if err != nil {
		return nil, fmt.Errorf("loading images: connecting to containerd at %s: %w", socket, err)
	}
	defer c.Close() //nolint:errcheck // the connection has done its work
	ctx = namespaces.WithNamespace(ctx, criNamespace)
	images, err := c.Import(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", archive, err)
	}
	var names []string
	for i := range images {
		img := client.NewImage(c, images[i])
		if err := img.Unpack(ctx, ""); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", images[i].Name, err)
		}
		names = append(names, images[i].Name)
	}
	return names, nil
}
