package selection

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/probe"
)

// ForEach works on several things concurrently, at most limit at a time, and returns what
// became of each. An error of one stops no other.
func ForEach[T any](things []T, limit int, work func(T) error) []error {
	errs := make([]error, len(things))
	var group errgroup.Group
	group.SetLimit(max(limit, 1))
	for i, thing := range things {
		group.Go(func() error {
			errs[i] = work(thing)
			return nil // An error would stop the others.
		})
	}
	_ = group.Wait()
	return errs
}

// OneByOne works on several things one after the other, and returns what became of them. An
// error of one stops no other.
func OneByOne[T any](ctx context.Context, things []T, work func(T) error) error {
	var outcomes []error
	for _, one := range things {
		err := work(one)
		switch {
		case ctx.Err() != nil && err != nil:
			return err // It says in which call the time ended.
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		outcomes = append(outcomes, err)
	}
	if len(outcomes) > 0 && !slices.ContainsFunc(outcomes, isAnswered) {
		return outcomes[0]
	}
	return exit.Join(ctx, outcomes...)
}

// isAnswered reports whether an error shows that the runtime answers; so does none.
func isAnswered(err error) bool {
	gone := (*cri.UnavailableError)(nil)
	return !errors.As(err, &gone)
}

// ProbeFirst runs the probes of pods that are due, so that plans and status know their results.
func ProbeFirst(ctx context.Context, engine *runtime.Engine, pods ...*podspec.Desired) error {
	return OneByOne(ctx, pods, func(d *podspec.Desired) error {
		_, err := engine.Prober.Probe(ctx, d, probe.Options{Due: true})
		return err
	})
}
