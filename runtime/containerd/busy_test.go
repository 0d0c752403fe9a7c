package containerd

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestRetry checks that a call is repeated while containerd is busy, or after a lost task was ended, and that the last
// error is the call's own.
func TestRetry(t *testing.T) {
	var (
		busy  = errors.New("container is already in removing state")
		stuck = errors.New("cannot delete running task web: failed precondition")
		other = errors.New("no such container")
		lost  = errors.New("containerd is gone")
	)
	freed := 0
	free := func(err error) func(context.Context) error {
		return func(context.Context) error { freed++; return err }
	}
	for name, c := range map[string]struct {
		answers []error
		free    func(context.Context) error
		want    []error
		freed   int
	}{
		"at once":                       {[]error{nil}, free(nil), nil, 0},
		"busy twice":                    {[]error{busy, busy, nil}, nil, nil, 0},
		"a lost task":                   {[]error{stuck, nil}, free(nil), nil, 1},
		"one that cannot be ended":      {[]error{stuck}, nil, []error{stuck}, 0},
		"one that cannot be freed":      {[]error{stuck}, free(lost), []error{stuck, lost}, 1},
		"what does not pass":            {[]error{other}, free(nil), []error{other}, 0},
		"what does not pass, afterward": {[]error{busy, other}, free(nil), []error{other}, 0},
	} {
		freed = 0
		calls := 0
		err := Retry(t.Context(), func(context.Context) error { calls++; return c.answers[calls-1] }, c.free)
		missing := slices.ContainsFunc(c.want, func(want error) bool { return !errors.Is(err, want) })
		if (err == nil) != (len(c.want) == 0) || missing || calls != len(c.answers) || freed != c.freed {
			t.Errorf("%s: %v after %d calls and %d tasks ended", name, err, calls, freed)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := Retry(ctx, func(context.Context) error { return busy }, nil); !errors.Is(err, busy) {
		t.Errorf("after the timeout: %v", err)
	}
	cancel()
	if err := Retry(ctx, func(context.Context) error { return stuck }, free(lost)); !errors.Is(err, stuck) || errors.Is(err, lost) {
		t.Errorf("after the end: %v", err)
	}
}
