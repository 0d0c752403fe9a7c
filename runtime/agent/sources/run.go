package sources

import (
	"context"
	"time"

	"github.com/podctl/podctl/runtime/model"
)

// poller reads a source periodically and reports changes.
type poller struct {
	texts *Texts
	// read reads the source.
	read func(context.Context) Reading
	// interval is the time between two reads.
	interval time.Duration
	// events requests a read before the interval is over. It is nil if the source has no events.
	events <-chan struct{}
	// readsTwice is set if the source must be read again before a missing object is dropped.
	readsTwice bool

	reported Update
}

// run reads the source until the context ends.
func (l *poller) run(ctx context.Context, reread <-chan chan struct{}, notify func(Update)) {
	var next time.Time
	var requested chan struct{}
	for due := true; ; {
		if due {
			r := l.read(ctx)
			if ctx.Err() != nil {
				return
			}
			next = time.Now().Add(l.interval)
			if r.Err == nil && len(r.Removed) > 0 {
				l.texts.Drop(r.Removed)
				l.report(notify)
			}
			l.texts.Take(time.Now(), r)
		}
		again := l.report(notify)
		if requested != nil {
			close(requested)
		}
		requested = nil
		timer := time.NewTimer(time.Until(model.Earlier(again, next)))
		select {
		case <-ctx.Done():
		case requested = <-reread:
			due = true
		case <-l.events:
			due = true
		case <-timer.C:
			due = l.readsTwice || !time.Now().Before(next)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// report reports a changed state of the source, and returns when to call again.
func (l *poller) report(notify func(Update)) time.Time {
	u, again := l.texts.Wanted(time.Now())
	if !u.SameAs(l.reported) {
		l.reported = u
		notify(u)
	}
	return again
}

// debounce sends once a series of events is over, because files are written in several steps. If the series does not
// end, debounce sends after ten times the quiet period.
func debounce(ctx context.Context, events <-chan change, quiet time.Duration) <-chan struct{} {
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
					// A notification that was not received yet is replaced by the one for this series.
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

// pause returns how long no other event may follow a change before files are read. It lets several renamed files, as
// from rsync, be read together.
func (c change) pause(quiet time.Duration) time.Duration {
	if c == replaced {
		return quiet / 10
	}
	return quiet
}
