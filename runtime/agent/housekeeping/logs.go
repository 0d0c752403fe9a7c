package housekeeping

import (
	"context"
	"errors"

	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
)

// rotateLogs rotates full logs (kubelet: rotateLogs), and trims other files that containers write to. It queries the
// runtime only for a log that is large enough, unless the log is unchanged since it had no writer.
func (h *Housekeeper) rotateLogs(ctx context.Context) error {
	written := h.pods(ctx)
	errs := []error{h.world.Garbage.TrimFiles(written)}
	grown := h.world.Garbage.GrownLogs(written)
	idle := map[string]gc.GrownLog{}
	var pods []model.PodRef
	for _, log := range grown {
		if h.idleLogs[log.Path] == log {
			idle[log.Path] = log
		} else if len(pods) == 0 || pods[len(pods)-1] != log.Pod {
			pods = append(pods, log.Pod)
		}
	}
	h.idleLogs = idle
	for _, ref := range pods {
		full, err := h.world.Garbage.FullLogs(ctx, ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		h.recordIdle(grown, ref, full)
		for i := range full {
			errs = append(errs, h.remove(ctx, &full[i]))
		}
	}
	return errors.Join(errs...)
}

// recordIdle records the large logs of a pod to which no container writes.
func (h *Housekeeper) recordIdle(grown []gc.GrownLog, ref model.PodRef, full []gc.Garbage) {
	written := map[string]bool{}
	for i := range full {
		written[full[i].Path] = true
	}
	for _, log := range grown {
		if log.Pod == ref && !written[log.Path] {
			h.idleLogs[log.Path] = log
		}
	}
}
