package cri

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/status"
)

// NoneAnswered is the error of a look at several pods that showed none of them: the context ended
// meanwhile, or the runtime does not answer at all.
func NoneAnswered(ctx context.Context, errs []error) error {
	first := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	switch {
	case ctx.Err() != nil && first >= 0:
		return errs[first] // It says in which call the time ended.
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(errs) > 0 && !slices.ContainsFunc(errs, answered):
		return errs[0]
	}
	return nil
}

// isAnswer reports whether an error shows that the runtime answered; so does none.
func answered(err error) bool {
	gone := (*UnavailableError)(nil)
	return !errors.As(err, &gone)
}

// Said is what the runtime itself said, without what podctl says about the call; any other error
// in its own words.
func Said(err error) string {
	if call := (*callError)(nil); errors.As(err, &call) {
		said, _ := status.FromError(call.err)
		return said.Message()
	}
	return err.Error()
}

// Raw is what the runtime said as the transport has it, "rpc error: code = …"; any other error in
// its own words.
func Raw(err error) string {
	if call := (*callError)(nil); errors.As(err, &call) {
		return call.err.Error()
	}
	return err.Error()
}
