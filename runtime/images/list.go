package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Store is the images of a runtime.
type Store struct {
	client *cri.Client
	layout state.Layout
	puller *Puller
	// pulled remembers which images podctl pulled.
	pulled state.PulledImages
}

// NewStore makes a Store. What podctl's pods need is read below the layout.
func NewStore(client *cri.Client, layout state.Layout) *Store {
	return &Store{client: client, layout: layout, puller: &Puller{}, pulled: layout.PulledImages()}
}

// Image is one image of the runtime, and who needs it.
type Image struct {
	ID      string   `json:"id"`
	Tags    []string `json:"tags,omitempty"`
	Digests []string `json:"digests,omitempty"`
	Size    uint64   `json:"size"`
	// Pinned reports whether the runtime itself needs the image, for its sandboxes.
	Pinned bool `json:"pinned,omitempty"`
	// UsedBy are the containers made of the image, or with it as a volume.
	UsedBy []User `json:"usedBy,omitempty"`
	// NamedBy are the pods whose manifests, as they were applied, name the image. Of a pod that was
	// evicted nothing is needed.
	NamedBy []model.PodRef `json:"namedBy,omitempty"`
}

// User is a container that needs an image.
type User struct {
	Pod       model.PodRef `json:"pod"`
	Container string       `json:"container"`
	Running   bool         `json:"running"`
}

// String names the container and its pod.
func (u User) String() string {
	state := "ended"
	if u.Running {
		state = "running"
	}
	return fmt.Sprintf("container %s of pod %s (%s)", u.Container, u.Pod, state)
}

// compare sorts those that run before the others, and both by name.
func (u User) compare(other User) int {
	running := func(u User) int {
		if u.Running {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(running(u), running(other)), strings.Compare(u.Pod.String(), other.Pod.String()), strings.Compare(u.Container, other.Container))
}

// Names are all names of the image: its tags, or else its digests.
func (i *Image) Names() []string {
	if len(i.Tags) > 0 {
		return i.Tags
	}
	return i.Digests
}

// Name is the image's first name, or its id when it has none.
func (i *Image) Name() string {
	if names := i.Names(); len(names) > 0 {
		return names[0]
	}
	return i.ID
}

// OtherNames are the names of the image that somebody who asked for it by one of
// them may not know of. Who asks by the id means all.
func (i *Image) OtherNames(asked string) []string {
	repository, _, _ := Parts(asked)
	known := func(name string) bool { return Canonical(name) == Canonical(asked) }
	names := slices.Concat(i.Tags, i.Digests)
	if !slices.ContainsFunc(names, known) {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		own, _, digest := Parts(name)
		return known(name) || (digest != "" && own == repository)
	})
}

// Unused reports whether nobody needs the image.
func (i *Image) Unused() bool {
	return !i.Pinned && len(i.UsedBy) == 0 && len(i.NamedBy) == 0
}

// List lists the images of the runtime by their names, with those who need
// them. Of a checkpoint that cannot be read nobody can say which images its pod
// needs.
func (s *Store) List(ctx context.Context) (images []*Image, unreadable []error, err error) {
	return s.list(ctx, s.neededImages)
}

// ListByImage is List without a question for each container: an image that is mounted as a volume
// has the pods that name it as its users, and not the containers.
func (s *Store) ListByImage(ctx context.Context) (images []*Image, unreadable []error, err error) {
	return s.list(ctx, func(_ context.Context, c *runtimeapi.Container) ([]string, error) { return ownImage(c), nil })
}

// needs names the images that a container needs, by name or id.
type needs func(context.Context, *runtimeapi.Container) ([]string, error)

func (s *Store) list(ctx context.Context, of needs) (images []*Image, unreadable []error, err error) {
	applied, unreadable, err := state.Applied(s.layout)
	if err != nil {
		return nil, nil, err
	}
	found, err := s.listImages(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := s.addUsers(ctx, found, of); err != nil {
		return nil, nil, err
	}
	index := indexImages(found)
	for _, pod := range applied {
		if pod.Checkpoint.Eviction != nil {
			continue
		}
		ref := model.RefOf(pod.Desired.Pod)
		for _, img := range index.find(podspec.ImageNames(pod.Desired.Pod)...) {
			img.NamedBy = append(img.NamedBy, ref)
		}
	}
	return found, unreadable, nil
}

// imageIndex finds images by their ids and names.
type imageIndex map[string]*Image

func indexImages(images []*Image) imageIndex {
	index := imageIndex{}
	for _, img := range images {
		index[img.ID] = img
		for _, name := range slices.Concat(img.Tags, img.Digests) {
			index[Canonical(name)] = img
		}
	}
	return index
}

// find returns the images of some names or ids, each once; what is not there is
// left out.
func (x imageIndex) find(names ...string) []*Image {
	var found []*Image
	for _, name := range names {
		img := cmp.Or(x[name], x["sha256:"+name], x[Canonical(name)])
		if img != nil && !slices.Contains(found, img) {
			found = append(found, img)
		}
	}
	return found
}

func (s *Store) listImages(ctx context.Context) ([]*Image, error) {
	reply, err := s.client.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	sandbox, err := s.sandboxImage(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]*Image, 0, len(reply.GetImages()))
	for _, img := range reply.GetImages() {
		one := &Image{
			ID: img.GetId(), Tags: slices.Sorted(slices.Values(img.GetRepoTags())), Digests: slices.Sorted(slices.Values(img.GetRepoDigests())),
			Size: img.GetSize(), Pinned: img.GetPinned(),
		}
		found = append(found, one)
	}
	for _, img := range indexImages(found).find(sandbox) {
		img.Pinned = true
	}
	slices.SortFunc(found, func(a, b *Image) int { return strings.Compare(a.Name(), b.Name()) })
	return found, nil
}

// sandboxImage is the image of the runtime's sandboxes as containerd 1 tells it;
// newer runtimes mark it as pinned.
func (s *Store) sandboxImage(ctx context.Context) (string, error) {
	reply, err := s.client.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
	if err != nil {
		return "", fmt.Errorf("asking the runtime for its sandbox image: %w", err)
	}
	return cri.ReadInfo(reply.GetInfo()).Config.SandboxImage, nil
}

// addUsers notes at each image the containers that need it. Those of others count
// as podctl's own do.
func (s *Store) addUsers(ctx context.Context, images []*Image, of needs) error {
	list, err := s.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return fmt.Errorf("listing containers: %w", err)
	}
	needed := make([][]string, len(list.GetContainers()))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(cri.MaxCalls)
	for i, c := range list.GetContainers() {
		group.Go(func() (err error) {
			needed[i], err = of(groupCtx, c)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("asking containers for their images: %w", err)
	}
	index := indexImages(images)
	for i, c := range list.GetContainers() {
		for _, img := range index.find(needed[i]...) {
			img.UsedBy = append(img.UsedBy, userOf(c))
		}
	}
	for _, img := range images {
		slices.SortFunc(img.UsedBy, User.compare)
	}
	return nil
}

// neededImages are the names or ids of the images of one container: its own, and
// those that are mounted as volumes.
func (s *Store) neededImages(ctx context.Context, c *runtimeapi.Container) ([]string, error) {
	needed := ownImage(c)
	reply, err := s.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()})
	if err != nil {
		return needed, cri.IgnoreNotFound(err)
	}
	for _, m := range reply.GetStatus().GetMounts() {
		needed = append(needed, m.GetImage().GetImage())
	}
	return needed, nil
}

// ownImage are the names and ids of the image of a container.
func ownImage(c *runtimeapi.Container) []string {
	return []string{c.GetImageId(), c.GetImageRef(), c.GetImage().GetImage()}
}

func userOf(c *runtimeapi.Container) User {
	labels := c.GetLabels()
	return User{
		Pod: model.PodRef{
			Namespace: labels[criconfig.LabelPodNamespace], Name: labels[criconfig.LabelPodName], UID: types.UID(labels[criconfig.LabelPodUID]),
		},
		Container: c.GetMetadata().GetName(),
		Running:   c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING,
	}
}

// Find finds an image by a name or an id, of which the beginning is enough
// when it is unique.
func Find(images []*Image, name string) (*Image, error) {
	if found := indexImages(images).find(name); len(found) > 0 {
		return found[0], nil
	}
	var begins []*Image
	for _, img := range images {
		if strings.HasPrefix(img.ID, name) || strings.HasPrefix(img.ID, "sha256:"+name) {
			begins = append(begins, img)
		}
	}
	switch len(begins) {
	case 0:
		return nil, fmt.Errorf("no image %s: the runtime has none of that name or id (`podctl image ls` lists them)", name)
	case 1:
		return begins[0], nil
	}
	return nil, fmt.Errorf("%q is the beginning of %d image ids; give more of it", name, len(begins))
}

// Remove removes an image with all its names: the CRI has no call that takes away one of them.
func (s *Store) Remove(ctx context.Context, img *Image) error {
	_, err := s.client.Images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: img.ID}})
	if err = cri.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("removing image %s: %w", img.Name(), err)
	}
	return s.pulled.Forget(state.PulledName(img.ID))
}

// Notes tell which images podctl pulled.
type Notes map[string]bool

// Has reports whether podctl pulled an image.
func (n Notes) Has(id string) bool { return n[state.PulledName(id)] }

// Notes reads which images podctl pulled.
func (s *Store) Notes() (Notes, error) { return s.pulled.List() }

// ForgetGone forgets the images that are gone: somebody else who pulls one of them again owns it.
// What was noted since then stays.
func (s *Store) ForgetGone(notes Notes, present []*Image) error {
	gone := maps.Clone(notes)
	for _, img := range present {
		delete(gone, state.PulledName(img.ID))
	}
	var errs []error
	for name := range gone {
		errs = append(errs, s.pulled.Forget(name))
	}
	return errors.Join(errs...)
}

// FileSystem is a directory of the file system that the runtime keeps images on; empty if it does
// not say.
func (s *Store) FileSystem(ctx context.Context) (string, error) {
	reply, err := s.client.Images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		return "", fmt.Errorf("asking the runtime where it keeps images: %w", err)
	}
	if all := reply.GetImageFilesystems(); len(all) > 0 {
		return all[0].GetFsId().GetMountpoint(), nil
	}
	return "", nil
}
