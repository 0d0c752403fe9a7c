package selection

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/cri"
)

// TestForEach: no more than the limit work at a time, an error stops no other, and each thing
// has its own outcome.
func TestForEach(t *testing.T) {
	var busy, most atomic.Int32
	errs := ForEach([]int{0, 1, 2, 3, 4, 5, 6, 7}, 3, func(i int) error {
		most.Store(max(most.Load(), busy.Add(1)))
		defer busy.Add(-1)
		time.Sleep(5 * time.Millisecond) // The others get a chance to be too many.
		if i%2 == 1 {
			return exit.With(i + 1)
		}
		return nil
	})
	for i, err := range errs {
		if want := (i % 2) * (i + 1); exit.Code(t.Context(), err) != want {
			t.Errorf("%d: %v, want code %d", i, err, want)
		}
	}
	if most.Load() > 3 {
		t.Errorf("%d worked at a time", most.Load())
	}
}

// TestOneByOne: an error stops no other, unless the runtime answers for none or the time is
// over.
func TestOneByOne(t *testing.T) {
	gone := &cri.UnavailableError{}
	for name, c := range map[string]struct {
		outcomes []error
		code     int
		same     error
	}{
		"all well":         {[]error{nil, nil}, exit.OK, nil},
		"one fails":        {[]error{errors.New("x"), nil}, exit.Error, nil},
		"the worst code":   {[]error{exit.With(exit.NotYet), exit.With(exit.Refused)}, exit.Refused, nil},
		"nobody answers":   {[]error{gone, gone}, exit.Error, gone},
		"somebody answers": {[]error{gone, nil}, exit.Error, nil},
	} {
		calls := 0
		err := OneByOne(t.Context(), c.outcomes, func(err error) error { calls++; return err })
		if calls != len(c.outcomes) || exit.Code(t.Context(), err) != c.code || (c.same != nil && err != c.same) { //nolint:errorlint // it is that very error
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := OneByOne(ctx, []int{1, 2}, func(int) error { calls++; cancel(); return nil })
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %d calls, %v", calls, err)
	}
}
