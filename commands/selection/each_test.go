package selection

import (
	"context"
	"errors"
	"slices"
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

// TestLook: what is seen is in the order of the things, and what cannot be seen hides no other.
func TestLook(t *testing.T) {
	odd := errors.New("odd")
	seen, outcomes := Look([]int{0, 1, 2, 3, 4}, func(i int) (int, error) {
		time.Sleep(time.Duration(5-i) * time.Millisecond) // The last is the first to be seen.
		if i%2 == 1 {
			return 0, odd
		}
		return i * 10, nil
	})
	if !slices.Equal(seen, []int{0, 20, 40}) || !slices.Equal(outcomes, []error{nil, odd, nil, odd, nil}) {
		t.Errorf("%v, %v", seen, outcomes)
	}
}

// TestOutcome: of several pods the worst code counts, unless the runtime answers for none or the
// user ended it. The end of the time is an error like any other.
func TestOutcome(t *testing.T) {
	gone := &cri.UnavailableError{}
	late, cancelLate := context.WithDeadline(t.Context(), time.Now())
	defer cancelLate()
	for name, c := range map[string]struct {
		ctx      context.Context //nolint:containedctx // a case
		outcomes []error
		code     int
		same     error
	}{
		"all well":         {t.Context(), []error{nil, nil}, exit.OK, nil},
		"one fails":        {t.Context(), []error{errors.New("x"), nil}, exit.Error, nil},
		"the worst code":   {t.Context(), []error{exit.With(exit.NotYet), exit.With(exit.Refused)}, exit.Refused, nil},
		"nobody answers":   {t.Context(), []error{gone, gone}, exit.Error, gone},
		"somebody answers": {t.Context(), []error{gone, nil}, exit.Error, nil},
		"the time is over": {late, []error{errors.New("gave up"), nil}, exit.Error, nil},
	} {
		err := Outcome(c.ctx, c.outcomes)
		if exit.Code(c.ctx, err) != c.code || (c.same != nil && err != c.same) { //nolint:errorlint // it is that very error
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Outcome(ctx, []error{nil, gone}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
