package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/state"
)

// settlePulls records the images of killed pulls (kubelet: PullManager.initialize).
func (h *Housekeeper) settlePulls(ctx context.Context) error { return h.world.Images.SettlePulls(ctx) }

// removeImages records the present images, and removes unused ones that are old, and others when their disk is full.
func (h *Housekeeper) removeImages(ctx context.Context) error {
	if h.settings.Images.never() {
		return nil
	}
	notes, err := h.world.Images.Notes()
	if err != nil {
		return err
	}
	found, _, err := h.world.Images.ListByImage(ctx)
	if err != nil {
		return err
	}
	first := len(h.images) == 0
	h.images.record(h.settings.Now(), h.convert(found, notes))
	// In the first run all images are new, so that none could be removed.
	if err = h.world.Images.ForgetGone(notes, found); err != nil || first {
		return err
	}
	return errors.Join(h.removeOldImages(ctx, notes), h.removeExcess(ctx, notes))
}

// removeOldImages removes images that no pod has used for the maximum age.
func (h *Housekeeper) removeOldImages(ctx context.Context, notes images.Notes) error {
	unused := h.settings.Images.MaxAge
	if unused == 0 {
		return nil
	}
	_, err := h.free(ctx, notes, removal{
		bytes: math.MaxInt64, unused: unused, because: fmt.Sprintf("no pod has used the image for %v", unused),
	})
	return err
}

// removeExcess removes images if their disk is full.
func (h *Housekeeper) removeExcess(ctx context.Context, notes images.Notes) error {
	full, err := h.usage(ctx)
	if err != nil {
		return err
	}
	excess, err := h.settings.Images.excess(full)
	if err != nil || excess == 0 {
		return err
	}
	freed, err := h.free(ctx, notes, removal{bytes: excess, because: diskFull})
	if err == nil && freed < excess {
		err = fmt.Errorf("%d%% of the image disk is used, and removing unused images does not free enough: "+
			"check the used images, logs and volumes on it", full.percent())
	}
	return err
}

// usage returns the usage of the image disk.
func (h *Housekeeper) usage(ctx context.Context) (u usage, err error) {
	path, err := h.world.Images.FileSystem(ctx)
	if err != nil {
		return u, err
	}
	if u.Capacity, u.Available, err = h.world.Disk(path); err != nil {
		return u, fmt.Errorf("reading the usage of the image disk: %w", err)
	}
	return u, nil
}

// diskFull is why images are removed that are not old.
const diskFull = "the image disk is full"

// removal selects images: as many as free a number of bytes. If unused is not 0, only those that no pod has used for
// longer.
type removal struct {
	bytes   int64
	unused  time.Duration
	because string
}

// free removes images, and returns how many bytes are freed. It reads again which images are needed. It removes none if
// a checkpoint is unreadable, because the images of that pod are then unknown.
func (h *Housekeeper) free(ctx context.Context, notes images.Notes, r removal) (int64, error) {
	found, unreadable, err := h.world.Images.List(ctx)
	if err != nil {
		return 0, err
	}
	if len(unreadable) > 0 {
		return 0, errors.New(
			"no image is removed, because the needed images are unknown: " + state.Troubles(unreadable))
	}
	now, all := h.settings.Now(), h.convert(found, notes)
	h.images.record(now, all)
	order := h.images.order(now, h.settings.Images.MinAge, all)
	if r.unused != 0 {
		order = h.images.old(now, r.unused, order)
	}
	return free(order, r.bytes, func(img image) error {
		i := slices.IndexFunc(found, func(one *images.Image) bool { return one.ID == img.ID })
		if err := h.world.Images.Remove(ctx, found[i]); err != nil {
			return err
		}
		h.settings.Log.Info("removed", "image", found[i].Name(), "bytes", img.Size, "because", r.because)
		return nil
	})
}

// convert converts images. If the runtime does not belong to podctl, only images that podctl pulled are removable.
// Otherwise, images that others pulled are removable, too, but not images from an archive: they could not be pulled
// again and have no digest.
func (h *Housekeeper) convert(found []*images.Image, notes images.Notes) []image {
	all := make([]image, 0, len(found))
	for _, img := range found {
		all = append(all, image{
			ID: img.ID, Size: int64(img.Size), // images are smaller
			Used:      len(img.UsedBy)+len(img.NamedBy) > 0,
			Removable: !img.Pinned && (notes.Has(img.ID) || (h.settings.OwnRuntime && len(img.Digests) > 0)),
		})
	}
	return all
}
