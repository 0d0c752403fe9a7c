package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/podctl/podctl/runtime/containerd"
)

// Untag removes one name of an image that has others, and returns these. It requires containerd, because the CRI
// removes an image with all its names.
func (s *Store) Untag(ctx context.Context, img *Image, name string) (others []string, err error) {
	others = img.OtherNames(name)
	store, err := s.Containerd()
	if err == nil {
		err = errors.Join(store.Untag(ctx, img.namesOf(name)), store.Close())
	}
	if refused := (*containerd.NotContainerdError)(nil); errors.As(err, &refused) {
		return nil, fmt.Errorf("image %s has other names, and this runtime can only remove all of them: %s; "+
			"remove it by its id %s",
			name, strings.Join(others, ", "), img.ID)
	}
	if err == nil {
		// The name is removed. It does no harm if the CRI has not noticed yet.
		_, err = s.await(ctx, name, func(present bool) bool { return !present })
	}
	if err != nil {
		return nil, fmt.Errorf("removing the name %s of an image: %w", name, err)
	}
	return others, nil
}

// namesOf returns a name of the image, and its digests in that repository if it has no other tag there.
func (i *Image) namesOf(given string) []string {
	repository, _, _ := Parts(given)
	of := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			own, _, _ := Parts(name)
			return own != repository
		})
	}
	other := func(tag string) bool { return Canonical(tag) != Canonical(given) }
	if slices.ContainsFunc(of(i.Tags), other) {
		return []string{Canonical(given)}
	}
	return append([]string{Canonical(given)}, of(i.Digests)...)
}

// Tag gives an image another name, and moves the name if another image has it. It requires containerd, because the CRI
// has no call for it.
func (s *Store) Tag(ctx context.Context, img *Image, name string) (string, error) {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", fmt.Errorf("%q is not an image name: %w", name, err)
	}
	if _, ok := ref.(reference.Digested); ok {
		return "", fmt.Errorf("%q has a digest: an image is tagged with NAME:TAG", name)
	}
	store, err := s.Containerd()
	if err == nil {
		err = errors.Join(store.Tag(ctx, img.Name(), ref.String()), store.Close())
	}
	if err == nil {
		_, err = s.await(ctx, ref.String(), func(present bool) bool { return present })
	}
	if err != nil {
		return "", fmt.Errorf("tagging image %s: %w", img.Name(), err)
	}
	return ref.String(), nil
}
