package cri

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestPullMessage checks that the code of a failed pull is shown only if it has a meaning, as in the kubelet.
func TestPullMessage(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("podctl: %w", &callError{err}) }
	for want, err := range map[string]error{
		"no such host": wrapped(status.Error(codes.Unknown, "no such host")),
		"rpc error: code = NotFound desc = i:1: not found": wrapped(status.Error(codes.NotFound, "i:1: not found")),
		"no credentials": errors.New("no credentials"),
	} {
		if got := PullMessage(err); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
