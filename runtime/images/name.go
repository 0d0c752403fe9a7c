package images

import (
	"fmt"
	"slices"

	"github.com/distribution/reference"
)

// Canonical returns the canonical form of a name: with its registry, and with its digest or else its tag. A text that
// is not a name, such as an id, is returned unchanged.
func Canonical(name string) string {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return name
	}
	return ref.String()
}

// Parts returns the repository of a name, and its tag or digest. For a text that is not a name they are empty.
func Parts(name string) (repository, tag, digest string) {
	ref, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", "", ""
	}
	if tagged, ok := ref.(reference.Tagged); ok {
		tag = tagged.Tag()
	}
	if digested, ok := ref.(reference.Digested); ok {
		digest = digested.Digest().String()
	}
	return ref.Name(), tag, digest
}

// FullName returns the runtime's name of an image for any of its names or its id.
func (i *Info) FullName(given string) (string, error) {
	names := slices.Concat(i.RepoTags, i.RepoDigests)
	for _, name := range names {
		if Canonical(name) == Canonical(given) {
			return name, nil
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("image %s has no name: pull it by a name, or remove it", given)
	}
	return names[0], nil
}

// Pin returns the name of an image by its digest in the requested repository.
func (i *Info) Pin(given string) (string, error) {
	repository, _, digest := Parts(given)
	if digest != "" {
		return given, nil
	}
	for _, name := range slices.Sorted(slices.Values(i.RepoDigests)) {
		if own, _, _ := Parts(name); own == repository {
			return name, nil
		}
	}
	return "", fmt.Errorf("image %s has no digest: it was loaded from an archive; "+
		"push it to a registry and pull it from there", given)
}
