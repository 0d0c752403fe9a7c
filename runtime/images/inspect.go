package images

import (
	"context"
	"encoding/json"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Details is an image with its configuration from the registry or the archive.
type Details struct {
	*Image
	// Config is the configuration of the OCI specification; nil if the runtime does not report it.
	Config json.RawMessage `json:"config,omitempty"`
}

// Inspect returns an image with its configuration from the runtime.
func (s *Store) Inspect(ctx context.Context, img *Image) (*Details, error) {
	reply, err := s.client.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{
		Image:   &runtimeapi.ImageSpec{Image: img.ID},
		Verbose: true,
	})
	if err != nil {
		return nil, fmt.Errorf("inspecting image %s: %w", img.Name(), err)
	}
	var info struct {
		ImageSpec json.RawMessage `json:"imageSpec"`
	}
	if text := reply.GetInfo()["info"]; text != "" {
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			return nil, fmt.Errorf("inspecting image %s: the runtime's answer cannot be read: %w", img.Name(), err)
		}
	}
	return &Details{Image: img, Config: info.ImageSpec}, nil
}
