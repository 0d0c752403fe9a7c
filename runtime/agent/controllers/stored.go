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

// Expand returns the pods that a workload wants now.
func (w Stored) Expand(ctx context.Context, r *controller.Record) (*controller.Expanded, error) {
	applied, _, err := state.Applied(w.Expander.Layout)
	if err != nil {
		return nil, err
	}
	return w.Expander.Expand(ctx, r, applied)
}

// Apply stores a workload as its manifest has it, and keeps a restart that a user has requested since.
func (w Stored) Apply(ctx context.Context, one *podspec.Workload) error {
	one = one.DeepCopy()
	w.Merge(one)
	_, err := w.Put(ctx, one)
	return err
}

// StoredObjects are the ConfigMaps, Secrets, claims and Services of a state directory.
type StoredObjects struct {
	*objects.Store
	// Services updates names and traffic after a change of a Service.
	Services func(context.Context)
}

// Apply stores an object as its manifest has it.
func (s StoredObjects) Apply(ctx context.Context, o *podspec.Object) error {
	changed := false
	err := s.Put(ctx, []*podspec.Object{o}, func(c objects.Change) { changed = c.Outcome != objects.Unchanged })
	if changed && o.Service != nil {
		s.Services(ctx)
	}
	return err
}

// Delete removes an object. A missing object is not an error.
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
