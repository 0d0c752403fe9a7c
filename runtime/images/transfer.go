package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/sleep"
)

// Requests returns the images a pod names, each with the pod's pull secrets.
func Requests(d *podspec.Desired) []Request {
	var requests []Request
	for _, name := range podspec.ImageNames(d.Pod) {
		requests = append(requests, Request{Image: name, Annotations: d.Pod.Annotations, Secrets: PullSecrets(d)})
	}
	return requests
}

// PullProgress is the progress of a pull, as far as the runtime reports it.
type PullProgress struct {
	// Done and Total are the bytes of the parts started so far. The size of later parts is not known before.
	Done, Total int64
	// Parts is the number of started parts.
	Parts int
}

// pullTick is the interval for checking the progress.
const pullTick = 200 * time.Millisecond

// Pull pulls an image, even if it exists, and returns the runtime's data about it. It calls report with the progress
// from another goroutine.
func (s *Store) Pull(ctx context.Context, r Request, report func(PullProgress)) (Info, error) {
	before, _, err := Status(ctx, s.client.Images, r.Image)
	if err != nil {
		return Info{}, err
	}
	stop := WatchPull(ctx, s.client, report)
	_, err = s.puller.Pull(ctx, s.client.Images, r)
	stop()
	if err != nil {
		return Info{}, err
	}
	info, err := Pulled(ctx, s.client.Images, r.Image)
	if err != nil || info.ID == before.ID {
		return info, err
	}
	return info, s.pulled.Add(info.ID)
}

// WatchPull reports the progress of pulls that start now, from another goroutine, until stop is called. The CRI has no
// progress, so this requires containerd's own API.
func WatchPull(ctx context.Context, client *cri.Client, report func(PullProgress)) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watchPull(ctx, client, report)
	}()
	return func() {
		end()
		<-done
	}
}

// Pulled returns the runtime's data about an image after a pull.
func Pulled(ctx context.Context, client runtimeapi.ImageServiceClient, name string) (Info, error) {
	info, present, err := Status(ctx, client, name)
	if err == nil && !present {
		err = fmt.Errorf("image %s is absent although the runtime reported that it pulled it", name)
	}
	return info, err
}

// watchPull reports what containerd downloads until the context ends. On another runtime it reports nothing.
func watchPull(ctx context.Context, client *cri.Client, report func(PullProgress)) {
	store, err := openContainerd(client)
	if err != nil {
		return
	}
	defer store.Close() //nolint:errcheck // the connection has done its work
	before, err := store.Downloads(ctx)
	if err != nil {
		return
	}
	downloads := &downloads{before: before, seen: map[string]containerd.Download{}}
	for sleep.For(ctx, pullTick) == nil {
		now, err := store.Downloads(ctx)
		if err != nil {
			return
		}
		if p := downloads.advance(now); p.Parts > 0 {
			report(p)
		}
	}
}

// downloads sums the downloaded bytes since a pull began.
type downloads struct {
	// before holds the parts that existed before, left by an interrupted pull.
	before map[string]containerd.Download
	seen   map[string]containerd.Download
}

// advance updates the sums with the current downloads. A part that is no longer listed is complete.
func (d *downloads) advance(now map[string]containerd.Download) PullProgress {
	for name, one := range d.seen {
		if _, still := now[name]; !still {
			one.Done = max(one.Done, one.Total)
			d.seen[name] = one
		}
	}
	for name, one := range now {
		if old, left := d.before[name]; !left || old != one {
			d.seen[name] = one
		}
	}
	var p PullProgress
	for _, one := range d.seen {
		p.Done += one.Done
		p.Total += max(one.Done, one.Total)
		p.Parts++
	}
	return p
}

// Containerd returns containerd's own API behind the image service.
func (s *Store) Containerd() (*containerd.Store, error) { return openContainerd(s.client) }

func openContainerd(client *cri.Client) (*containerd.Store, error) {
	socket := client.ImageEndpoint.Socket()
	if socket == "" {
		return nil, fmt.Errorf("the runtime at %s: containerd's own API is available only on a unix socket",
			client.ImageEndpoint)
	}
	return containerd.OpenStore(socket)
}

// The CRI notices with a delay that containerd added or removed an image.
const (
	loadedTries = 100
	loadedPause = 50 * time.Millisecond
)

// Load imports an image archive in docker's or the OCI's format. It returns the names of the images once the runtime
// knows them. It requires containerd.
func (s *Store) Load(ctx context.Context, r io.Reader) ([]string, error) {
	store, err := s.Containerd()
	if err != nil {
		return nil, err
	}
	names, err := store.Import(ctx, r)
	if err = errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	// The images are loaded: an interrupt now must not report a failure.
	ctx = context.WithoutCancel(ctx)
	for _, name := range names {
		if err := s.awaitImage(ctx, name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// awaitImage waits until the CRI has an image.
func (s *Store) awaitImage(ctx context.Context, name string) error {
	there, err := s.await(ctx, name, func(present bool) bool { return present })
	if err == nil && !there {
		err = fmt.Errorf("image %s was loaded, but the runtime does not list it; restart the runtime", name)
	}
	return err
}

// await waits until wanted is true for the presence of an image in the CRI, and reports whether that happened in time.
func (s *Store) await(ctx context.Context, name string, wanted func(present bool) bool) (bool, error) {
	for range loadedTries {
		if _, present, err := Status(ctx, s.client.Images, name); wanted(present) || err != nil {
			return err == nil, err
		}
		if err := sleep.For(ctx, loadedPause); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Save writes images as an OCI archive. It requires containerd.
func (s *Store) Save(ctx context.Context, w io.Writer, names []string) error {
	full := make([]string, 0, len(names))
	for _, name := range names {
		info, err := s.presentImage(ctx, name)
		if err != nil {
			return err
		}
		one, err := info.FullName(name)
		if err != nil {
			return err
		}
		full = append(full, one)
	}
	store, err := s.Containerd()
	if err != nil {
		return err
	}
	return errors.Join(store.Export(ctx, w, full), store.Close())
}

// Pin maps every image in the pods to its name by digest, which always means the same image. The error names images
// that are missing, or that were loaded from an archive and have no digest.
func (s *Store) Pin(ctx context.Context, pods []*podspec.Desired) (map[string]string, error) {
	pins := map[string]string{}
	var errs []error
	for _, d := range pods {
		for _, name := range podspec.ImageNames(d.Pod) {
			if _, known := pins[name]; known {
				continue
			}
			pin, err := s.pinImage(ctx, name)
			pins[name] = pin
			errs = append(errs, err)
		}
	}
	return pins, errors.Join(errs...)
}

func (s *Store) pinImage(ctx context.Context, name string) (string, error) {
	info, err := s.presentImage(ctx, name)
	if err != nil {
		return "", err
	}
	return info.Pin(name)
}

// presentImage returns the runtime's data about an image, or an error if it is missing.
func (s *Store) presentImage(ctx context.Context, name string) (Info, error) {
	info, present, err := Status(ctx, s.client.Images, name)
	if err == nil && !present {
		err = fmt.Errorf("image %s is absent; `podctl image pull %s` pulls it", name, name)
	}
	return info, err
}

// PullSecrets returns the pod's imagePullSecrets that the manifests have.
func PullSecrets(d *podspec.Desired) []*v1.Secret {
	var secrets []*v1.Secret
	for _, ref := range d.Pod.Spec.ImagePullSecrets {
		if secret := d.Objects.Secrets[ref.Name]; secret != nil {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
