package sources

import (
	"context"
	"time"
)

// looker looks at a source again and again, and tells what is new.
type looker struct {
	texts *Texts
	// look reads the source.
	look func(context.Context) Reading
	// interval is the time between two looks.
	interval time.Duration
	// events say that a look is worth while before that; nil if nothing says so.
	events <-chan struct{}
	// looksTwice is set when what is missing is looked for again before it is given up.
	looksTwice bool

	told Update
}

// run looks until the context ends.
func (l *looker) run(ctx context.Context, reread <-chan struct{}, tell func(Update)) {
	var next time.Time
	for due := true; ; {
		if due {
			r := l.look(ctx)
			if ctx.Err() != nil {
				return
			}
			next = time.Now().Add(l.interval)
			l.texts.Take(time.Now(), r)
		}
		u, again := l.texts.Wanted(time.Now())
		if !u.SameAs(l.told) {
			l.told = u
			tell(u)
		}
		timer := time.NewTimer(time.Until(first(again, next)))
		select {
		case <-ctx.Done():
		case _, open := <-reread:
			if due = open; !open {
				reread = nil
			}
		case <-l.events:
			due = true
		case <-timer.C:
			due = l.looksTwice || !time.Now().Before(next)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// settled sends once a row of events is over: files are written in several steps. A row that does
// not end is reported in between, and a file that was replaced as a whole at once.
func settled(ctx context.Context, events <-chan change, quiet time.Duration) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case c := <-events:
				if c == written && !rowEnds(ctx, events, quiet) {
					return
				}
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}

// rowEnds waits until there was no event for a while, or for ten times as long; false when the
// context ends.
func rowEnds(ctx context.Context, events <-chan change, quiet time.Duration) bool {
	limit := time.NewTimer(10 * quiet)
	defer limit.Stop()
	for {
		pause := time.NewTimer(quiet)
		select {
		case <-ctx.Done():
			pause.Stop()
			return false
		case <-events:
			pause.Stop()
		case <-pause.C:
			return true
		case <-limit.C:
			pause.Stop()
			return true
		}
	}
}
