package commands

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/podctl/podctl/runtime/cri"
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

// inTurn works on several pods, one after the other, and returns what became of them. One
// that fails keeps no other from it.
func inTurn[T any](ctx context.Context, pods []T, work func(T) error) error {
	var outcomes []error
	for _, one := range pods {
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
	return together(ctx, outcomes)
}

// isAnswered reports whether an error shows that the runtime answers; so does none.
func isAnswered(err error) bool {
	gone := (*cri.UnavailableError)(nil)
	return !errors.As(err, &gone)
}

// together is how a command over several pods ends: with the errors of all, each once (a
// live kubelet is the same one for every pod), and with the worst of their codes.
func together(ctx context.Context, outcomes []error) error {
	code := exitOK
	var errs []error
	for _, err := range outcomes {
		code = worst(code, exitCode(ctx, err))
		told := func(before error) bool { return errors.Is(before, err) || before.Error() == err.Error() }
		if err != nil && err.Error() != "" && !slices.ContainsFunc(errs, told) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &codeError{code: code, err: err}
	}
	return withCode(code)
}
