package controllers

import (
	"context"
	"time"

	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/state"
)

// Stored are the workloads of a state directory.
type Stored struct {
	*controller.Store
	Expander *controller.Expander
}

// All reads the stored workloads.
func (w Stored) All() ([]*controller.Record, error) {
	return w.List(func(state.ObjectKey) bool { return true })
}

// ChangedAt is when one was changed last.
func (w Stored) ChangedAt() time.Time { return w.Expander.Layout.Workloads().ChangedAt() }

// Expand says which pods a workload shall have now.
func (w Stored) Expand(ctx context.Context, r *controller.Record) (*controller.Expanded, error) {
	applied, _, err := state.Applied(w.Expander.Layout)
	if err != nil {
		return nil, err
	}
	return w.Expander.Expand(ctx, r, applied)
}
