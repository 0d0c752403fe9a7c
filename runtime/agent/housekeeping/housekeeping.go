package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// Settings configure a Housekeeper.
type Settings struct {
	// MaxRecords is the maximum number of records of ended containers. If negative, there is no limit.
	MaxRecords int
	Images     Thresholds
	// OwnRuntime is set if the runtime belongs to podctl. Then images that others pulled are removed, too.
	OwnRuntime bool
	// Now is the clock. Removals and failures are written to Log.
	Now func() time.Time
	Log *slog.Logger
}

// World is the environment of a Housekeeper.
type World struct {
	Garbage *gc.Collector
	Images  *images.Store
	// Disk returns the size and the available space of a directory's file system, in bytes.
	Disk func(path string) (capacity, available int64, err error)
}

// Pods returns the pods that the agent keeps.
type Pods func(ctx context.Context) []model.PodRef

// Housekeeper runs the housekeeping tasks of an agent.
type Housekeeper struct {
	// mu is held by the running task.
	mu sync.Mutex

	world    World
	settings Settings
	pods     Pods
	// logged holds the failures of each task's last run. They are not logged again. The goroutine of Run uses it.
	logged [taskCount]map[string]bool
	// idleLogs holds the large logs to which no container writes.
	idleLogs map[string]gc.GrownLog
	// images holds the records of images.
	images imageRecords
}

// New returns a Housekeeper.
func New(w World, s Settings) *Housekeeper {
	return &Housekeeper{world: w, settings: s, idleLogs: map[string]gc.GrownLog{}, images: imageRecords{}}
}

// Run runs the tasks until the context ends, one at a time.
func (h *Housekeeper) Run(ctx context.Context, pods Pods) {
	h.pods = pods
	s := newSchedule(h.settings.Now())
	for {
		c, at := s.next()
		if sleep.For(ctx, max(at.Sub(h.settings.Now()), time.Millisecond)) != nil {
			return
		}
		h.runTask(ctx, c)
		s.done(c, h.settings.Now())
	}
}

// runTask runs one task and logs its failures.
func (h *Housekeeper) runTask(ctx context.Context, c task) {
	err := h.runNow(ctx, c, func(ctx context.Context) error { return c.properties().run(h, ctx) })
	if ctx.Err() == nil {
		h.logFailures(c, err)
	}
}

// logFailures logs the failures of a task that its last run did not have. Joined errors have a line each.
func (h *Housekeeper) logFailures(c task, err error) {
	before, now := h.logged[c], map[string]bool{}
	h.logged[c] = now
	if err == nil {
		return
	}
	for text := range strings.SplitSeq(err.Error(), "\n") {
		if !before[text] && !now[text] {
			h.settings.Log.Error("housekeeping", "error", text)
		}
		now[text] = true
	}
}

// remove removes a piece of garbage, unless another process has locked its pod or it is needed again.
func (h *Housekeeper) remove(ctx context.Context, g *gc.Garbage) error {
	err := h.world.Garbage.RemoveIfFree(ctx, *g)
	switch {
	case errors.Is(err, gc.ErrNeeded), errors.As(err, new(*filelock.LockedError)):
		return nil
	case err != nil:
		return fmt.Errorf("pod %s: %s: %w", g.PodText(), g.Describe(), err)
	}
	attrs := []any{"pod", g.PodText(), "what", g.Describe(), "because", g.Reason}
	if g.Kind == gc.GarbageFullLog {
		h.settings.Log.Info("rotated", attrs...)
	} else {
		h.settings.Log.Info("removed", attrs...)
	}
	return nil
}
