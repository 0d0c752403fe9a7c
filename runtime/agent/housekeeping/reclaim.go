package housekeeping

import (
	"context"
	"math"
)

// RemoveGarbage removes all unneeded records and the leftovers of deleted pods, because a disk runs full.
func (h *Housekeeper) RemoveGarbage(ctx context.Context) error {
	return h.runNow(ctx, recordTask, func(ctx context.Context) error {
		garbage, err := h.world.Garbage.Reclaim(ctx)
		return h.removeAll(ctx, garbage, err)
	})
}

// RemoveImages removes all removable images, because a disk runs full (kubelet: DeleteUnusedImages).
func (h *Housekeeper) RemoveImages(ctx context.Context) error {
	return h.runNow(ctx, imageTask, func(ctx context.Context) error {
		notes, err := h.world.Images.Notes()
		if err == nil {
			_, err = h.free(ctx, notes, removal{bytes: math.MaxInt64, because: diskFull})
		}
		return err
	})
}

// runNow runs a function within the time limit of a task, after the running task has ended.
func (h *Housekeeper) runNow(ctx context.Context, c task, do func(context.Context) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.properties().limit)
	defer cancel()
	return do(ctx)
}
