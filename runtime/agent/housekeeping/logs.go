package housekeeping

import (
	"context"
	"errors"

	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
)

// rotateLogs rotates the logs of kept pods that are full (kubelet: rotateLogs), and trims other files that containers write to. The runtime is only
// asked for a log that is large enough and has changed since nobody was found to write to it.
func (h *Housekeeper) rotateLogs(ctx context.Context) error {
	kept := h.pods(ctx)
	errs := []error{h.world.Garbage.TrimFiles(kept)}
	grown := h.world.Garbage.GrownLogs(kept)
	looked := map[string]gc.GrownLog{}
	var pods []model.PodRef
	for _, log := range grown {
		if h.looked[log.Path] == log {
			looked[log.Path] = log
		} else if len(pods) == 0 || pods[len(pods)-1] != log.Pod {
			pods = append(pods, log.Pod)
		}
	}
	h.looked = looked
	for _, ref := range pods {
		full, err := h.world.Garbage.FullLogs(ctx, ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		h.noteIdle(grown, ref, full)
		for i := range full {
			errs = append(errs, h.remove(ctx, &full[i]))
		}
	}
	return errors.Join(errs...)
}

// noteIdle takes note of the large logs of a pod that no container writes to.
func (h *Housekeeper) noteIdle(grown []gc.GrownLog, ref model.PodRef, full []gc.Garbage) {
	written := map[string]bool{}
	for i := range full {
		written[full[i].Path] = true
	}
	for _, log := range grown {
		if log.Pod == ref && !written[log.Path] {
			h.looked[log.Path] = log
		}
	}
}
