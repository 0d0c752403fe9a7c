package sources

import (
	"context"
	"time"

	"github.com/podctl/podctl/runtime/model"
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
func (l *looker) run(ctx context.Context, reread <-chan chan struct{}, tell func(Update)) {
	var next time.Time
	var asked chan struct{}
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
		if asked != nil {
			close(asked)
		}
		asked = nil
		timer := time.NewTimer(time.Until(model.Earlier(again, next)))
		select {
		case <-ctx.Done():
		case asked = <-reread:
			due = true
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

// settled sends once a row of events is over: files are written in several steps. One that does not end is reported after ten times as
// long as nothing must happen.
func settled(ctx context.Context, events <-chan change, quiet time.Duration) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		var row change
		var pause, limit <-chan time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case c := <-events:
				if limit == nil {
					row, limit = c, time.After(10*quiet)
					// What was reported and not looked at waits for this row.
					select {
					case <-out:
					default:
					}
				}
				row = min(row, c)
				pause = time.After(row.pause(quiet))
				continue
			case <-pause:
			case <-limit:
			}
			pause, limit = nil, nil
			out <- struct{}{}
		}
	}()
	return out
}

// pause is how long nothing more may happen after a change before files are read. Several that are renamed to their
// names, as by rsync, are read together.
func (c change) pause(quiet time.Duration) time.Duration {
	if c == replaced {
		return quiet / 10
	}
	return quiet
}
