package runtimetest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ImageStatus returns an image, or none.
func (s *imageService) ImageStatus(
	_ context.Context, r *runtimeapi.ImageStatusRequest,
) (*runtimeapi.ImageStatusResponse, error) {
	return &runtimeapi.ImageStatusResponse{Image: s.find(r.GetImage().GetImage())}, nil
}

// ListImages lists images.
func (s *imageService) ListImages(
	context.Context, *runtimeapi.ListImagesRequest,
) (*runtimeapi.ListImagesResponse, error) {
	reply := &runtimeapi.ListImagesResponse{}
	for _, id := range slices.Sorted(maps.Keys(s.images)) {
		reply.Images = append(reply.Images, s.images[id])
	}
	return reply, nil
}

// ImageFsInfo reports that images are on the file system of the root directory.
func (s *imageService) ImageFsInfo(
	context.Context, *runtimeapi.ImageFsInfoRequest,
) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{
		{Timestamp: s.now(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/"}},
	}}, nil
}

// PullImage pulls any image except those of the registry "absent.local". The registry "private.local" accepts only the
// user "right".
func (s *imageService) PullImage(
	_ context.Context, r *runtimeapi.PullImageRequest,
) (*runtimeapi.PullImageResponse, error) {
	name := r.GetImage().GetImage()
	s.log("PullImage %s", name)
	if strings.HasPrefix(name, "absent.local/") {
		return nil, status.Errorf(codes.NotFound, "failed to pull and unpack image %q: not found", name)
	}
	if strings.HasPrefix(name, "private.local/") && r.GetAuth().GetUsername() != "right" {
		return nil, status.Errorf(codes.Unknown, "failed to pull and unpack image %q: 401 Unauthorized", name)
	}
	return &runtimeapi.PullImageResponse{ImageRef: s.addImage(name).GetId()}, nil
}

// RemoveImage removes an image.
func (s *imageService) RemoveImage(
	_ context.Context, r *runtimeapi.RemoveImageRequest,
) (*runtimeapi.RemoveImageResponse, error) {
	s.log("RemoveImage %s", r.GetImage().GetImage())
	if img := s.find(r.GetImage().GetImage()); img != nil {
		delete(s.images, img.GetId())
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}
