package housekeeping

import (
	"context"
	"errors"

	"github.com/podctl/podctl/runtime/gc"
)

// removeRecords removes records of ended containers, replaced sandboxes, and leftovers of deleted pods (kubelet:
// containerGC.GarbageCollect, HandlePodCleanups).
func (h *Housekeeper) removeRecords(ctx context.Context) error {
	garbage, err := h.world.Garbage.Upkeep(ctx, h.settings.MaxRecords)
	return h.removeAll(ctx, garbage, err)
}

// removeAll removes the garbage that was found. It continues after failures.
func (h *Housekeeper) removeAll(ctx context.Context, garbage []gc.Garbage, failed error) error {
	errs := []error{failed}
	for i := range garbage {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, h.remove(ctx, &garbage[i]))
	}
	return errors.Join(errs...)
}
