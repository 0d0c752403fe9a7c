package housekeeping

import (
	"context"
	"errors"
)

// removeRecords removes records of containers that ended, sandboxes that were replaced, and what
// deleted pods left (kubelet: containerGC.GarbageCollect, HandlePodCleanups).
func (h *Housekeeper) removeRecords(ctx context.Context) error {
	garbage, err := h.world.Garbage.Upkeep(ctx, h.settings.MaxRecords)
	errs := []error{err}
	for i := range garbage {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, h.remove(ctx, &garbage[i]))
	}
	return errors.Join(errs...)
}
