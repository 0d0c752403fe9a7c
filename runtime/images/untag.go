package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/containerd"
)

// Untag takes one name away from an image that has others, which are returned. Only containerd
// can: the CRI removes an image with all its names, of which the user may not know.
func (s *Store) Untag(ctx context.Context, img *Image, name string) (others []string, err error) {
	others = img.OtherNames(name)
	store, err := s.Containerd()
	if err == nil {
		err = errors.Join(store.Untag(ctx, img.namesOf(name)), store.Close())
	}
	if refused := (*containerd.NotContainerdError)(nil); errors.As(err, &refused) {
		return nil, fmt.Errorf("image %s has other names, and this runtime can only remove all of them: %s; remove it by its id %s",
			name, strings.Join(others, ", "), img.ID)
	}
	if err == nil {
		err = s.awaitImage(ctx, name, isAbsent)
	}
	if err != nil {
		return nil, fmt.Errorf("removing the name %s of an image: %w", name, err)
	}
	return others, nil
}

// namesOf are a name of the image, and its digests in that repository if it has no other tag there.
func (i *Image) namesOf(asked string) []string {
	repository, _, _ := Parts(asked)
	of := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			own, _, _ := Parts(name)
			return own != repository
		})
	}
	other := func(tag string) bool { return Canonical(tag) != Canonical(asked) }
	if slices.ContainsFunc(of(i.Tags), other) {
		return []string{Canonical(asked)}
	}
	return append([]string{Canonical(asked)}, of(i.Digests)...)
}
