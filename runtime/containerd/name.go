package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
)

// settleTimeout limits the time for naming loaded images, or for undoing it. The caller's context does not apply,
// because it could leave only some of the names set.
const settleTimeout = 2 * time.Minute

// nameImages sets the names of all images or of none: after a failure it restores the previous targets of the names.
func nameImages(ctx context.Context, store images.Store, all []images.Image) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var undo []func(context.Context) error
	for i := range all {
		back, err := nameImage(ctx, store, all[i])
		if back != nil {
			undo = append(undo, back)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("naming %s: %w", all[i].Name, err), takeBack(ctx, undo))
		}
	}
	return nil
}

// nameImage sets the name of one image, and returns a function that undoes it. It also returns it after a failure,
// because the name may have been set nevertheless.
func nameImage(ctx context.Context, store images.Store, img images.Image) (func(context.Context) error, error) {
	before, err := store.Get(ctx, img.Name)
	switch {
	case errdefs.IsNotFound(err):
		_, err = store.Create(ctx, img)
		if errdefs.IsAlreadyExists(err) {
			return nil, err // Another program has just set it.
		}
		return func(ctx context.Context) error { return store.Delete(ctx, img.Name) }, err
	case err != nil:
		return nil, err
	}
	_, err = store.Update(ctx, img, "target")
	back := func(ctx context.Context) error {
		_, backErr := store.Update(ctx, before, "target")
		return backErr
	}
	return back, err
}

// takeBack undoes the naming of images, the last one first.
func takeBack(ctx context.Context, undo []func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var errs []error
	for _, back := range slices.Backward(undo) {
		if err := back(ctx); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("removing a name again: %w", err))
		}
	}
	return errors.Join(errs...)
}
