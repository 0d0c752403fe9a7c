package snapshot

import (
	"slices"
	"strconv"

	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
)

// Image is an image of the runtime under one of its names.
type Image struct {
	// Reference is in the form of a manifest, or of the runtime.
	Reference string `json:"reference"`
	ID        string `json:"id"`
	// User is the user the image asks for: a number, a name, or empty.
	User string `json:"user,omitempty"`
	// Digests are the names with a digest under which it was pulled.
	Digests []string `json:"digests,omitempty"`
	// Unverified is set if the pod must pull the image although it is present, because other pods' credentials have
	// pulled it.
	Unverified bool `json:"unverified,omitempty"`
}

// ImagesOf returns the images of a pod by their names in its manifest. An image that the runtime does not have is
// empty.
func (s *Pod) ImagesOf(names []string) map[string]model.Image {
	if s.Images == nil {
		return nil
	}
	images := map[string]model.Image{}
	for _, name := range names {
		images[name], _ = s.Image(name)
	}
	return images
}

// Image returns the image for a reference of a manifest, if the runtime has it.
func (s *Pod) Image(reference string) (model.Image, bool) {
	i := slices.IndexFunc(s.Images, func(have Image) bool { return have.names(reference) })
	if i < 0 {
		return model.Image{}, false
	}
	return s.Images[i].Observed(), true
}

// names reports whether a reference of a manifest refers to this image. A reference without tag and digest gets the tag
// latest, and is never a name in the runtime.
func (i *Image) names(reference string) bool {
	tagged, err := images.WithTag(reference)
	return err == nil && (i.ID == reference || i.Reference == tagged || images.SameReference(i.Reference, tagged))
}

// Observed translates the image for the planner.
func (i *Image) Observed() model.Image {
	out := model.Image{ID: i.ID, Digests: i.Digests, Unverified: i.Unverified}
	if uid, err := strconv.ParseInt(i.User, 10, 64); err == nil {
		out.UID = &uid
	} else {
		out.Username = i.User
	}
	return out
}
