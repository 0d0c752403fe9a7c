package commands

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
)

// sideBySide works on several things, so many at a time, and returns what became of each.
func sideBySide[T any](things []T, atATime int, work func(T) error) []error {
	errs := make([]error, len(things))
	var group errgroup.Group
	group.SetLimit(max(atATime, 1))
	for i, thing := range things {
		group.Go(func() error {
			errs[i] = work(thing)
			return nil // What becomes of one keeps no other.
		})
	}
	_ = group.Wait()
	return errs
}

// together is how a command over several pods ends: with the errors of all, each once (a
// live kubelet is the same one for every pod), and with the worst of their codes.
func together(ctx context.Context, outcomes []error) error {
	code := exitOK
	var errs []error
	for _, err := range outcomes {
		code = worst(code, exitCode(ctx, err))
		told := func(before error) bool { return errors.Is(before, err) }
		if err != nil && err.Error() != "" && !slices.ContainsFunc(errs, told) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &codeError{code: code, err: err}
	}
	return withCode(code)
}
