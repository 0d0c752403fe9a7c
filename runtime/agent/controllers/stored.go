package controllers

import (
	"context"
	"errors"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// Stored are the workloads of a state directory.
type Stored struct {
	*controller.Store
	Expander *controller.Expander
}

// Expand says which pods a workload shall have now.
func (w Stored) Expand(ctx context.Context, r *controller.Record) (*controller.Expanded, error) {
	applied, _, err := state.Applied(w.Expander.Layout)
	if err != nil {
		return nil, err
	}
	return w.Expander.Expand(ctx, r, applied)
}

// Apply keeps a workload as a manifest has it, with the restart that somebody asked for since.
func (w Stored) Apply(ctx context.Context, one *podspec.Workload) error {
	one = one.DeepCopy()
	w.Merge(one)
	_, err := w.Put(ctx, one)
	return err
}

// StoredObjects are the ConfigMaps, Secrets, claims and Services of a state directory.
type StoredObjects struct {
	*objects.Store
	// Services lets names and traffic follow when a Service has changed.
	Services func(context.Context)
}

// Apply stores an object as a manifest has it.
func (s StoredObjects) Apply(ctx context.Context, o *podspec.Object) error {
	changed := false
	err := s.Put(ctx, []*podspec.Object{o}, func(c objects.Change) { changed = c.Outcome != objects.Unchanged })
	if changed && o.Service != nil {
		s.Services(ctx)
	}
	return err
}

// Delete removes an object. One that is gone is no error.
func (s StoredObjects) Delete(ctx context.Context, key state.ObjectKey) error {
	err := s.Store.Delete(ctx, key)
	if gone := (*objects.NotFoundError)(nil); errors.As(err, &gone) {
		err = nil
	}
	if key.Kind == podspec.KindService {
		s.Services(ctx)
	}
	return err
}
