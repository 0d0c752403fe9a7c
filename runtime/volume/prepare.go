package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"
)

// Prepare makes a volume ready to be mounted: it creates and mounts what is
// missing, writes content, and checks a hostPath. It may be called again at any
// time: content is brought up to date, also while it is in use, and what is
// complete stays as it is. When it fails, a volume of the pod's own that was not
// there before is not there after. What was made on the host stays, and so does
// the directory of a claim: other pods may have found it.
func Prepare(ctx context.Context, c Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	vol, at, err := c.find(name)
	if err == nil {
		err = c.prepare(vol, at)
	}
	if err != nil {
		return fmt.Errorf("MountVolume.SetUp failed for volume %q: %w", name, err)
	}
	return nil
}

func (c Context) prepare(vol *v1.Volume, at string) error {
	switch {
	case vol.HostPath != nil:
		return prepareHostPath(vol.HostPath, at)
	case vol.Image != nil:
		return nil
	case vol.PersistentVolumeClaim != nil:
		return c.prepareClaim(vol)
	case vol.EmptyDir != nil:
		return c.prepareEmptyDir(vol)
	case hasContent(vol):
		return c.prepareContent(vol)
	}
	return &UnsupportedError{Path: at}
}

// prepareEmptyDir makes an empty directory. One that is complete is left alone,
// owners and modes included: they are the pod's by now.
func (c Context) prepareEmptyDir(vol *v1.Volume) error {
	ready, err := c.ready(vol)
	if err != nil || ready {
		return err
	}
	if err = c.unmark(vol); err != nil {
		return err
	}
	path, err := c.Path(vol)
	if err != nil {
		return err
	}
	_, before := os.Lstat(path)
	err = c.makeEmptyDir(vol, path)
	// One that was there, though not complete, may hold what the pod wrote.
	if err != nil && errors.Is(before, fs.ErrNotExist) {
		return errors.Join(err, c.tearDown(vol))
	}
	return err
}

func (c Context) makeEmptyDir(vol *v1.Volume, path string) error {
	if err := c.makeMedium(vol); err != nil {
		return err
	}
	dir, err := c.Pod.Open(path)
	if err != nil {
		return err
	}
	if err = errors.Join(c.giveToPod(dir), dir.Close()); err != nil {
		return err
	}
	return c.complete(vol)
}

// prepareContent makes a volume that podctl fills. What it shall hold is
// computed before anything is made.
func (c Context) prepareContent(vol *v1.Volume) error {
	files, err := Content(c, vol)
	if err != nil {
		return err
	}
	before, err := c.ready(vol)
	if err != nil {
		return err
	}
	if err = c.makeContent(vol, files); err != nil && !before {
		return errors.Join(err, c.tearDown(vol))
	}
	return err
}

func (c Context) makeContent(vol *v1.Volume, files map[string]File) error {
	if err := c.makeMedium(vol); err != nil {
		return err
	}
	w, err := openWriter(c, vol)
	if err != nil {
		return err
	}
	defer w.close()
	if err := c.makeNested(vol); err != nil {
		return err
	}
	if err := w.write(files); err != nil {
		return err
	}
	return c.complete(vol)
}

// complete does what comes after the content, and says that nothing is missing.
func (c Context) complete(vol *v1.Volume) error {
	if err := c.share(vol); err != nil {
		return err
	}
	return c.mark(vol)
}
