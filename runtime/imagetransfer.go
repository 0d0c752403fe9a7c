package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/image"
)

// ImageRequests are the images a pod names, each with the pod's pull secrets.
func ImageRequests(d *podspec.Desired) []image.Request {
	var requests []image.Request
	for _, name := range podspec.ImageNames(d.Pod) {
		requests = append(requests, image.Request{Image: name, Annotations: d.Pod.Annotations, Secrets: pullSecrets(d)})
	}
	return requests
}

// PullProgress is how far a pull is, as far as the runtime tells.
type PullProgress struct {
	// Done and Total are the bytes of the parts that have been begun: what will
	// come is not known before.
	Done, Total int64
	// Parts is how many of them have been begun.
	Parts int
}

// pullTick is how often a pull is asked how far it is.
const pullTick = 200 * time.Millisecond

// PullImage pulls an image anew, and tells what the runtime has then. The CRI
// does not tell how far a pull is; where the runtime is containerd its own API
// does, and report is called with it, from another goroutine.
func (e *Engine) PullImage(ctx context.Context, r image.Request, report func(PullProgress)) (image.Info, error) {
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.watchPull(watching, report)
	}()
	_, err := e.puller.Pull(ctx, e.client.Images, r)
	stop()
	<-done
	if err != nil {
		return image.Info{}, err
	}
	return e.pulledImage(ctx, r.Image)
}

// pulledImage is what the runtime knows of an image that it says it pulled.
func (e *Engine) pulledImage(ctx context.Context, name string) (image.Info, error) {
	info, present, err := image.Status(ctx, e.client.Images, name)
	if err == nil && !present {
		err = fmt.Errorf("image %s is absent although the runtime says it pulled it", name)
	}
	return info, err
}

// watchPull reports what containerd downloads until the context ends. On another
// runtime it reports nothing.
func (e *Engine) watchPull(ctx context.Context, report func(PullProgress)) {
	store, err := e.store()
	if err != nil {
		return
	}
	defer store.Close() //nolint:errcheck // the connection has done its work
	before, err := store.Downloads(ctx)
	if err != nil {
		return
	}
	downloads := &downloads{before: before, seen: map[string]containerd.Download{}}
	for sleep(ctx, pullTick) == nil {
		now, err := store.Downloads(ctx)
		if err != nil {
			return
		}
		if p := downloads.advance(now); p.Parts > 0 {
			report(p)
		}
	}
}

// downloads adds up what has been downloaded since a pull began.
type downloads struct {
	// before is what lay there already, left by a pull that was cut off.
	before map[string]containerd.Download
	seen   map[string]containerd.Download
}

// advance takes in what is downloaded now. What was seen and is not there any
// more has come to its end.
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

// store is containerd's own API behind the image service.
func (e *Engine) store() (*containerd.Store, error) {
	socket := e.client.imageEndpoint.Socket()
	if socket == "" {
		return nil, fmt.Errorf("the runtime at %s: containerd's own API is only reached by a unix socket", e.client.imageEndpoint)
	}
	return containerd.OpenStore(socket)
}

// The CRI learns of an image that was loaded behind its back a moment later.
const (
	loadedTries = 100
	loadedPause = 50 * time.Millisecond
)

// LoadImages imports an image archive, of docker's or the OCI's form, and returns
// the names of the images once the runtime knows them. Only containerd can.
func (e *Engine) LoadImages(ctx context.Context, r io.Reader) ([]string, error) {
	store, err := e.store()
	if err != nil {
		return nil, err
	}
	names, err := store.Import(ctx, r)
	if err = errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	// They are loaded: who interrupts now is not told that they are not.
	ctx = context.WithoutCancel(ctx)
	for _, name := range names {
		if err := e.awaitImage(ctx, name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (e *Engine) awaitImage(ctx context.Context, name string) error {
	for range loadedTries {
		if _, present, err := image.Status(ctx, e.client.Images, name); present || err != nil {
			return err
		}
		if err := sleep(ctx, loadedPause); err != nil {
			return err
		}
	}
	return fmt.Errorf("image %s was loaded, and the runtime does not know it; restart the runtime", name)
}

// SaveImages writes images as an OCI archive. Only containerd can.
func (e *Engine) SaveImages(ctx context.Context, w io.Writer, names []string) error {
	full := make([]string, 0, len(names))
	for _, name := range names {
		info, err := e.presentImage(ctx, name)
		if err != nil {
			return err
		}
		one, err := info.FullName(name)
		if err != nil {
			return err
		}
		full = append(full, one)
	}
	store, err := e.store()
	if err != nil {
		return err
	}
	return errors.Join(store.Export(ctx, w, full), store.Close())
}

// PinImages maps every image that pods name to its name by digest, which means
// the same image for ever. What is absent, or was loaded from an archive and
// never had a digest, is named in the error.
func (e *Engine) PinImages(ctx context.Context, pods []*podspec.Desired) (map[string]string, error) {
	pins := map[string]string{}
	var errs []error
	for _, d := range pods {
		for _, name := range podspec.ImageNames(d.Pod) {
			if _, known := pins[name]; known {
				continue
			}
			pin, err := e.pinImage(ctx, name)
			pins[name] = pin
			errs = append(errs, err)
		}
	}
	return pins, errors.Join(errs...)
}

func (e *Engine) pinImage(ctx context.Context, name string) (string, error) {
	info, err := e.presentImage(ctx, name)
	if err != nil {
		return "", err
	}
	return info.Pin(name)
}

// presentImage is what the runtime knows of an image that it must have.
func (e *Engine) presentImage(ctx context.Context, name string) (image.Info, error) {
	info, present, err := image.Status(ctx, e.client.Images, name)
	if err == nil && !present {
		err = fmt.Errorf("image %s is absent; `podctl image pull %s` pulls it", name, name)
	}
	return info, err
}
