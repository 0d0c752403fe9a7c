package commands

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// sideBySide works on several things, so many at a time, and returns what became of each.
func sideBySide[T any](things []T, atATime int, work func(T) error) []error {
	errs := make([]error, len(things))
	slots := make(chan struct{}, max(atATime, 1))
	var group sync.WaitGroup
	for i, thing := range things {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = work(thing)
		})
	}
	group.Wait()
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
