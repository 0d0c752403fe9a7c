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

// aliveTimeout limits the check whether a runtime answers at all. It is added to the time of a command, and a busy
// runtime answers late.
const aliveTimeout = 10 * time.Second

// NoneAnswered returns the error of a query that found none of several pods: the user's interrupt, or that the runtime
// does not answer at all. It returns nil if the runtime answers in general, but not for these pods in time.
func (c *Client) NoneAnswered(ctx context.Context, errs []error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case len(errs) == 0 || slices.ContainsFunc(errs, IsAnswer) || c.alive(ctx):
		return nil
	}
	return errs[0]
}

// IsAnswer reports whether err shows that the runtime answered. It is true for nil.
func IsAnswer(err error) bool {
	gone, cancelled := (*UnavailableError)(nil), (*cancelledError)(nil)
	return !errors.As(err, &gone) && !errors.As(err, &cancelled)
}

// alive reports whether the runtime answers a simple call. It ignores the end of ctx.
func (c *Client) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aliveTimeout)
	defer cancel()
	_, err := c.Version(ctx, &runtimeapi.VersionRequest{})
	return err == nil
}

// MessageOf returns the runtime's own message without podctl's additions, or the text of any other error.
func MessageOf(err error) string {
	if call := (*callError)(nil); errors.As(err, &call) {
		reported, _ := status.FromError(call.err)
		return reported.Message()
	}
	return err.Error()
}

// Raw returns the runtime's message in the transport's form, "rpc error: code = …", or the text of any other error.
func Raw(err error) string {
	if call := (*callError)(nil); errors.As(err, &call) {
		return call.err.Error()
	}
	return err.Error()
}

// PullMessage returns the runtime's message about a failed pull, with the error code if there is one (kubelet:
// remoteImageService.PullImage).
func PullMessage(err error) string {
	if call := (*callError)(nil); errors.As(err, &call) && status.Code(call.err) != codes.Unknown {
		return call.err.Error()
	}
	return MessageOf(err)
}
