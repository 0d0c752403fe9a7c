package images

import (
	"fmt"
	"slices"

	"github.com/distribution/reference"
)

// Canonical is the one form of a name that all its forms have in common: with
// its registry, and with its digest or else its tag. What is no name stays as it
// is: an id, for example.
func Canonical(name string) string {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return name
	}
	return ref.String()
}

// Parts are the repository of a name, and its tag or its digest. What is no name
// has none.
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

// FullName is the name the runtime has for an image that was asked for by any
// name or by its id.
func (i *Info) FullName(asked string) (string, error) {
	names := slices.Concat(i.RepoTags, i.RepoDigests)
	for _, name := range names {
		if Canonical(name) == Canonical(asked) {
			return name, nil
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("image %s has no name: pull it by one, or remove it", asked)
	}
	return names[0], nil
}

// Pin is the name of an image by its digest in the repository that was asked for.
func (i *Info) Pin(asked string) (string, error) {
	repository, _, digest := Parts(asked)
	if digest != "" {
		return asked, nil
	}
	for _, name := range slices.Sorted(slices.Values(i.RepoDigests)) {
		if own, _, _ := Parts(name); own == repository {
			return name, nil
		}
	}
	return "", fmt.Errorf("image %s has no digest: it was loaded from an archive; push it to a registry and pull it from there", asked)
}
