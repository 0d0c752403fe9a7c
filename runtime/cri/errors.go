package cri

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// aliveTimeout bounds the question whether a runtime answers at all. It comes on top of the time of a command, and a busy runtime
// answers it late.
const aliveTimeout = 10 * time.Second

// NoneAnswered is the error of a look at several pods that showed none of them: the user ended it,
// or the runtime does not answer at all. One that answers, and only says nothing of these pods in
// time, hides none of them.
func (c *Client) NoneAnswered(ctx context.Context, errs []error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case len(errs) == 0 || slices.ContainsFunc(errs, IsAnswer) || c.alive(ctx):
		return nil
	}
	return errs[0]
}

// IsAnswer reports whether an error shows that the runtime answered; so does none.
func IsAnswer(err error) bool {
	gone, givenUp := (*UnavailableError)(nil), (*givenUpError)(nil)
	return !errors.As(err, &gone) && !errors.As(err, &givenUp)
}

// alive reports whether the runtime answers a simple question, also when the time of a command is
// over.
func (c *Client) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aliveTimeout)
	defer cancel()
	_, err := c.Version(ctx, &runtimeapi.VersionRequest{})
	return err == nil
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

// SaidOfPull is what the runtime said of an image that it could not pull: with the code of the
// failure, if it has one (kubelet: remoteImageService.PullImage).
func SaidOfPull(err error) string {
	if call := (*callError)(nil); errors.As(err, &call) && status.Code(call.err) != codes.Unknown {
		return call.err.Error()
	}
	return Said(err)
}
