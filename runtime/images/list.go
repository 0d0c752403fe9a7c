package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Store manages the images of a runtime.
type Store struct {
	client *cri.Client
	layout state.Layout
	puller *Puller
	// pulled records which images podctl pulled, and records with which credentials.
	pulled  state.PulledImages
	records *state.PullRecords
}

// NewStore returns a Store. It reads the needs of podctl's pods below the layout.
func NewStore(client *cri.Client, layout state.Layout) *Store {
	return &Store{
		client: client, layout: layout, puller: &Puller{},
		pulled: layout.PulledImages(), records: state.NewPullRecords(layout),
	}
}

// Image is an image of the runtime with its users.
type Image struct {
	ID      string   `json:"id"`
	Tags    []string `json:"tags,omitempty"`
	Digests []string `json:"digests,omitempty"`
	Size    uint64   `json:"size"`
	// Pinned reports whether the runtime itself needs the image for its sandboxes.
	Pinned bool `json:"pinned,omitempty"`
	// UsedBy lists the containers created from the image, or with it as a volume.
	UsedBy []User `json:"usedBy,omitempty"`
	// NamedBy lists the pods whose applied manifests name the image. Evicted pods need no images.
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

// compare sorts running containers first, and then by name.
func (u User) compare(other User) int {
	running := func(u User) int {
		if u.Running {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(running(u), running(other)),
		strings.Compare(u.Pod.String(), other.Pod.String()),
		strings.Compare(u.Container, other.Container),
	)
}

// Names returns all names of the image: its tags, or else its digests.
func (i *Image) Names() []string {
	if len(i.Tags) > 0 {
		return i.Tags
	}
	return i.Digests
}

// Name returns the image's first name, or its id if it has none.
func (i *Image) Name() string {
	if names := i.Names(); len(names) > 0 {
		return names[0]
	}
	return i.ID
}

// OtherNames returns the names of the image besides the one that the user given for. For an id it returns none, because
// an id means all names.
func (i *Image) OtherNames(given string) []string {
	repository, _, _ := Parts(given)
	known := func(name string) bool { return Canonical(name) == Canonical(given) }
	names := slices.Concat(i.Tags, i.Digests)
	if !slices.ContainsFunc(names, known) {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		own, _, digest := Parts(name)
		return known(name) || (digest != "" && own == repository)
	})
}

// Unused reports whether the image has no users.
func (i *Image) Unused() bool {
	return !i.Pinned && len(i.UsedBy) == 0 && len(i.NamedBy) == 0
}

// List returns the images of the runtime by name, with their users. unreadable lists checkpoints that cannot be read,
// so that the needs of their pods are unknown.
func (s *Store) List(ctx context.Context) (images []*Image, unreadable []error, err error) {
	return s.list(ctx, s.neededImages)
}

// ListByImage is List without a call for each container. For an image mounted as a volume it reports the pods that name
// it, but not the containers.
func (s *Store) ListByImage(ctx context.Context) (images []*Image, unreadable []error, err error) {
	return s.list(ctx, func(_ context.Context, c *runtimeapi.Container) ([]string, error) { return ownImage(c), nil })
}

// needs returns the images that a container needs, by name or id.
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

// imageIndex finds images by ids and names.
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

// find returns the images for names or ids without duplicates. It skips unknown ones.
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
			ID:      img.GetId(),
			Tags:    slices.Sorted(slices.Values(img.GetRepoTags())),
			Digests: slices.Sorted(slices.Values(img.GetRepoDigests())),
			Size:    img.GetSize(),
			Pinned:  img.GetPinned(),
		}
		found = append(found, one)
	}
	for _, img := range indexImages(found).find(sandbox) {
		img.Pinned = true
	}
	slices.SortFunc(found, func(a, b *Image) int { return strings.Compare(a.Name(), b.Name()) })
	return found, nil
}

// sandboxImage returns the image of the runtime's sandboxes, as reported by containerd 1. Newer runtimes pin it
// instead.
func (s *Store) sandboxImage(ctx context.Context) (string, error) {
	reply, err := s.client.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
	if err != nil {
		return "", fmt.Errorf("asking the runtime for its sandbox image: %w", err)
	}
	return cri.ReadInfo(reply.GetInfo()).Config.SandboxImage, nil
}

// addUsers adds to each image the containers that need it, including unmanaged ones.
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
		slices.SortStableFunc(img.UsedBy, User.compare)
	}
	return nil
}

// neededImages returns the names or ids of the images of one container: its own, and those mounted as volumes.
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

// ownImage returns the names and ids of the image of a container.
func ownImage(c *runtimeapi.Container) []string {
	return []string{c.GetImageId(), c.GetImageRef(), c.GetImage().GetImage()}
}

func userOf(c *runtimeapi.Container) User {
	labels := c.GetLabels()
	return User{
		Pod: model.PodRef{
			Namespace: labels[criconfig.LabelPodNamespace],
			Name:      labels[criconfig.LabelPodName],
			UID:       types.UID(labels[criconfig.LabelPodUID]),
		},
		Container: c.GetMetadata().GetName(),
		Running:   c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING,
	}
}

// Find returns an image by its name or id. A unique prefix of the id is enough.
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
		return nil, fmt.Errorf("no image %s: the runtime has none of that name or id (`podctl image ls` lists them)",
			name)
	case 1:
		return begins[0], nil
	}
	return nil, fmt.Errorf("%q is the prefix of %d image ids; give more characters", name, len(begins))
}

// Remove removes an image with all its names, because the CRI cannot remove a single name. The record of its pulls
// stays until ForgetGone, because it may already be that of a newer pull.
func (s *Store) Remove(ctx context.Context, img *Image) error {
	_, err := s.client.Images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{
		Image: &runtimeapi.ImageSpec{Image: img.ID},
	})
	if err = cri.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("removing image %s: %w", img.Name(), err)
	}
	return s.pulled.Forget(state.PulledName(img.ID))
}

// Notes holds the images that podctl pulled.
type Notes map[string]bool

// Has reports whether podctl pulled an image.
func (n Notes) Has(id string) bool { return n[state.PulledName(id)] }

// Notes reads which images podctl pulled.
func (s *Store) Notes() (Notes, error) { return s.pulled.List() }

// listingTime is longer than the time between the list of the images and ForgetGone, and than a runtime works on a
// cancelled pull.
const listingTime = 10 * time.Minute

// ForgetGone forgets images that no longer exist. If another program pulls one of them again, it is not podctl's.
// Images noted meanwhile stay.
func (s *Store) ForgetGone(notes Notes, present []*Image) error {
	gone, has := maps.Clone(notes), map[string]bool{}
	for _, img := range present {
		name := state.PulledName(img.ID)
		has[name] = true
		delete(gone, name)
	}
	errs := []error{s.records.Prune(has, time.Now().Add(-listingTime))}
	for name := range gone {
		errs = append(errs, s.pulled.Forget(name))
	}
	return errors.Join(errs...)
}

// SettlePulls records the images of killed pulls, so that no pod takes them for preloaded ones.
func (s *Store) SettlePulls(ctx context.Context) error {
	return s.records.Settle(time.Now().Add(-listingTime), func(image string) (string, error) {
		info, _, err := Status(ctx, s.client.Images, image)
		return info.ID, err
	})
}

// FileSystem returns a directory of the file system with the runtime's images, or an empty string if the runtime does
// not report it.
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
