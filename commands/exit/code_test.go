package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/syncpod"
	"github.com/podctl/podctl/runtime/wait"
)

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":    {nil, 0},
		"an error":   {errors.New("x"), 1},
		"refused":    {fmt.Errorf("x: %w", &load.RefusedError{}), 5},
		"blocked":    {&wait.BlockedError{}, 3},
		"timed out":  {&wait.TimeoutError{}, 3},
		"failed":     {fmt.Errorf("x: %w", &wait.FailedError{}), 6},
		"superseded": {&syncpod.SupersededError{}, 3},
		"coded":      {With(ProbeFailed), 4},
	} {
		if got := Code(t.Context(), c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Code(ctx, context.Canceled); got != Interrupted {
		t.Errorf("interrupted: %d", got)
	}
	if Worst(NotYet, PodFailed) != PodFailed || Worst(Error, PodFailed) != Error {
		t.Error("PodFailed must be worse than NotYet, and not an error")
	}
	if Worst(NotYet, Refused) != Refused || Worst(Error, NotYet) != Error {
		t.Error("the Worst code does not win")
	}
}

// TestWithUnreadable checks that an unreadable checkpoint is always reported, and that a worse exit code is kept.
func TestWithUnreadable(t *testing.T) {
	unreadable := errors.New("a checkpoint")
	for _, c := range []struct {
		err         error
		code        int
		wantMessage string
	}{
		{nil, Error, "a checkpoint"},
		{With(Pending), Error, "a checkpoint"},
		{errors.New("x"), Error, "x\na checkpoint"},
		{&CodeError{Code: Refused, Err: errors.New("x")}, Refused, "x\na checkpoint"},
	} {
		if err := WithUnreadable(t.Context(), c.err, unreadable); err.Error() != c.wantMessage ||
			Code(t.Context(), err) != c.code {
			t.Errorf("%v: %d %q", c.err, Code(t.Context(), err), err.Error())
		}
	}
	if err := WithUnreadable(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}

// TestJoin checks that each error is listed once, and that the worst code is returned.
func TestJoin(t *testing.T) {
	same := errors.New("a live kubelet")
	err := Join(t.Context(), With(NotYet), same, nil, errors.New("a live kubelet"),
		&CodeError{Code: Refused, Err: errors.New("y")})
	if Code(t.Context(), err) != Refused || err.Error() != "a live kubelet\ny" {
		t.Errorf("%d %q", Code(t.Context(), err), err)
	}
	if err := Join(t.Context(), With(NotYet), nil); Code(t.Context(), err) != NotYet || err.Error() != "" {
		t.Errorf("%d %q", Code(t.Context(), err), err)
	}
	if err := Join(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}

// TestCommandCode checks that podctl's own failures have a separate code in commands that pass on the code of a
// process.
func TestCommandCode(t *testing.T) {
	for _, c := range []struct {
		annotations map[string]string
		err         error
		want        int
	}{
		{nil, errors.New("x"), Error},
		{OwnFailure(ExecFailed), errors.New("x"), ExecFailed},
		{OwnFailure(ExecFailed), With(7), 7},
		{OwnFailure(ExecFailed), nil, OK},
	} {
		if got := CommandCode(t.Context(), c.annotations, c.err); got != c.want {
			t.Errorf("%v %v: %d, want %d", c.annotations, c.err, got, c.want)
		}
	}
}

// TestSkippedSteps checks that the advice to repeat the call is given only if a repetition can succeed.
func TestSkippedSteps(t *testing.T) {
	e := &SkippedError{Err: errors.New("injected failure"), Steps: []string{"start a", "start b"}}
	if got := e.Error(); got != "injected failure; not done: start a, start b; run the command again to continue" {
		t.Errorf("%q", got)
	}
	if e.Final = true; e.Error() != "injected failure; not done: start a, start b" {
		t.Errorf("%q", e.Error())
	}
}
