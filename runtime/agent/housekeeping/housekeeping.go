package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// Settings are what a Housekeeper is told.
type Settings struct {
	// MaxRecords is how many records of containers that ended there may be; below zero means no limit.
	MaxRecords int
	Images     Thresholds
	// OwnRuntime is set where the runtime is podctl's own: then images that others pulled go too.
	OwnRuntime bool
	// Now is the clock, Log where removals and failures are written.
	Now func() time.Time
	Log *slog.Logger
}

// World is what a Housekeeper works with.
type World struct {
	Garbage *gc.Collector
	Images  *images.Store
	// Disk tells how full the file system of a directory is.
	Disk func(path string) (capacity, available int64, err error)
}

// Pods tells which pods the agent keeps.
type Pods func(ctx context.Context) []model.PodRef

// Housekeeper does the chores of an agent.
type Housekeeper struct {
	// mu is held by the chore that runs.
	mu sync.Mutex

	world    World
	settings Settings
	pods     Pods
	// told are the failures of the last run of each chore, which are not written again.
	told [choreCount]map[string]bool
	// looked are the large logs of which it is known that no container writes to them.
	looked map[string]gc.GrownLog
	// images is what is remembered of images.
	images imageRecords
}

// New makes a Housekeeper.
func New(w World, s Settings) *Housekeeper {
	return &Housekeeper{world: w, settings: s, looked: map[string]gc.GrownLog{}, images: imageRecords{}}
}

// limits bound how long a chore may take.
func limits(c chore) time.Duration {
	return [choreCount]time.Duration{logChore: time.Minute, recordChore: 2 * time.Minute, imageChore: 5 * time.Minute}[c]
}

// Run does the chores until the context ends, one at a time.
func (h *Housekeeper) Run(ctx context.Context, pods Pods) {
	h.pods = pods
	s := newSchedule(h.settings.Now())
	for {
		c, at := s.next()
		if sleep.For(ctx, max(at.Sub(h.settings.Now()), time.Millisecond)) != nil {
			return
		}
		h.do(ctx, c)
		s.done(c, h.settings.Now())
	}
}

// do does one chore within its time.
func (h *Housekeeper) do(ctx context.Context, c chore) {
	h.mu.Lock()
	defer h.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, limits(c))
	defer cancel()
	work := [choreCount]func(context.Context) error{logChore: h.rotateLogs, recordChore: h.removeRecords, imageChore: h.removeImages}[c]
	err := work(limited)
	if ctx.Err() == nil {
		h.tell(c, err)
	}
}

// tell writes the failures of a chore that it did not have the last time.
func (h *Housekeeper) tell(c chore, err error) {
	now := map[string]bool{}
	for _, one := range parts(err) {
		text := one.Error()
		if !h.told[c][text] && !now[text] {
			h.settings.Log.Error("housekeeping", "error", text)
		}
		now[text] = true
	}
	h.told[c] = now
}

// parts are the errors that were joined to one.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, parts(one)...)
	}
	return all
}

// remove removes a piece of garbage, unless somebody works on its pod or needs it again.
func (h *Housekeeper) remove(ctx context.Context, g *gc.Garbage) error {
	err := h.world.Garbage.RemoveIfFree(ctx, *g)
	switch {
	case errors.Is(err, gc.ErrNeeded), errors.As(err, new(*filelock.LockedError)):
		return nil
	case err != nil:
		return fmt.Errorf("pod %s: %s: %w", g.Whose(), g.What(), err)
	}
	attrs := []any{"pod", g.Whose(), "what", g.What(), "because", g.Reason}
	if g.Kind == gc.GarbageFullLog {
		h.settings.Log.Info("rotated", attrs...)
	} else {
		h.settings.Log.Info("removed", attrs...)
	}
	return nil
}
