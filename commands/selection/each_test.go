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

// TestForEach checks that ForEach respects the limit, continues after an error, and returns the error of each thing.
func TestForEach(t *testing.T) {
	var busy, most atomic.Int32
	errs := ForEach([]int{0, 1, 2, 3, 4, 5, 6, 7}, 3, func(i int) error {
		most.Store(max(most.Load(), busy.Add(1)))
		defer busy.Add(-1)
		time.Sleep(5 * time.Millisecond) // Give the others time to exceed the limit.
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
		t.Errorf("%d ran at the same time", most.Load())
	}
}

// TestLook checks that results keep the order of the things, and that an error does not affect the other results.
func TestLook(t *testing.T) {
	odd := errors.New("odd")
	seen, outcomes := Look([]int{0, 1, 2, 3, 4}, func(i int) (int, error) {
		time.Sleep(time.Duration(5-i) * time.Millisecond) // The last thing is observed first.
		if i%2 == 1 {
			return 0, odd
		}
		return i * 10, nil
	})
	if !slices.Equal(seen, []int{0, 20, 40}) || !slices.Equal(outcomes, []error{nil, odd, nil, odd, nil}) {
		t.Errorf("%v, %v", seen, outcomes)
	}
}

// TestOutcome checks that the worst exit code of several pods is returned, unless the runtime answers for none or the
// user interrupts the command. A timeout is a normal error.
func TestOutcome(t *testing.T) {
	gone := &cri.UnavailableError{}
	late, cancelLate := context.WithDeadline(t.Context(), time.Now())
	defer cancelLate()
	for name, c := range map[string]struct {
		ctx      context.Context //nolint:containedctx // a test case
		outcomes []error
		code     int
		same     error
	}{
		"all well":         {t.Context(), []error{nil, nil}, exit.OK, nil},
		"one fails":        {t.Context(), []error{errors.New("x"), nil}, exit.Error, nil},
		"the worst code":   {t.Context(), []error{exit.With(exit.NotYet), exit.With(exit.Refused)}, exit.Refused, nil},
		"no pod answers":   {t.Context(), []error{gone, gone}, exit.Error, gone},
		"one pod answers":  {t.Context(), []error{gone, nil}, exit.Error, nil},
		"the timeout ends": {late, []error{errors.New("gave up"), nil}, exit.Error, nil},
	} {
		err := Outcome(c.ctx, c.outcomes)
		if exit.Code(c.ctx, err) != c.code ||
			(c.same != nil && err != c.same) { //nolint:errorlint // the error must be the same value
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Outcome(ctx, []error{nil, gone}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
