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

// ForEach calls work for several things, at most limit of them concurrently, and returns the error of each. An error
// does not stop the others.
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

// All calls look for several things concurrently. It returns the results and errors in the order of the things.
func All[T, R any](things []T, look func(T) (R, error)) (seen []R, outcomes []error) {
	seen, at := make([]R, len(things)), make([]int, len(things))
	for i := range at {
		at[i] = i
	}
	return seen, ForEach(at, cri.MaxCalls, func(i int) (err error) {
		seen[i], err = look(things[i])
		return err
	})
}

// Look is All without the results that failed or were not available in time.
func Look[T, R any](things []T, look func(T) (R, error)) (seen []R, outcomes []error) {
	all, outcomes := All(things, look)
	for i, err := range outcomes {
		if err == nil {
			seen = append(seen, all[i])
		}
	}
	return seen, outcomes
}

// Outcome returns the error of a command over several pods. Some of them may not have been observed.
func Outcome(ctx context.Context, outcomes []error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case len(outcomes) > 0 && !slices.ContainsFunc(outcomes, cri.IsAnswer):
		return outcomes[0]
	}
	return exit.Join(ctx, outcomes...)
}

// ProbeFirst runs the due probes of pods, so that plans and status contain their results.
func ProbeFirst(ctx context.Context, engine *runtime.Engine, pods ...*podspec.Desired) error {
	return Outcome(ctx, ForEach(pods, cri.MaxCalls, func(d *podspec.Desired) error {
		_, err := engine.Prober.Probe(ctx, d, probe.Options{Due: true})
		return err
	}))
}
