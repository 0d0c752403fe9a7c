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

// settleTimeout is how long giving names to loaded images may take, and taking them back. It
// is not cut short by the caller: half of the names would be neither loaded nor not loaded.
const settleTimeout = 2 * time.Minute

// nameImages gives images their names, all of them or none: after a failure, names that were
// there before have what they had.
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

// nameImage gives one image its name, and returns what takes the name back. It does so after
// a failure too, where the name may have been given all the same.
func nameImage(ctx context.Context, store images.Store, img images.Image) (func(context.Context) error, error) {
	before, err := store.Get(ctx, img.Name)
	switch {
	case errdefs.IsNotFound(err):
		_, err = store.Create(ctx, img)
		if errdefs.IsAlreadyExists(err) {
			return nil, err // somebody else gave it meanwhile
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
			errs = append(errs, fmt.Errorf("taking a name back: %w", err))
		}
	}
	return errors.Join(errs...)
}
