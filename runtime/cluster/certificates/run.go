package certificates

import (
	"context"
	"time"

	"github.com/podctl/podctl/runtime/sleep"
)

const (
	// lookEvery is how often the clock and the certificate are checked. retryAfter is the pause after a manager could
	// not start.
	lookEvery  = time.Minute
	retryAfter = 30 * time.Second
	// setBy is the smallest difference that counts as a clock that was set, also by a machine that slept.
	setBy = time.Minute
)

// Run replaces the certificate before it expires, until the context ends. When the clock of the machine is set, it
// computes the time of the next request again: the library's timer ignores the clock.
func (r *Rotation) Run(ctx context.Context) {
	for ctx.Err() == nil {
		r.runOnce(ctx, func() time.Time { return time.Now().Round(0) })
	}
}

// runOnce runs a manager until the clock is set, or the client certificate expires: the manager would continue to wait
// for a pending request that the API server no longer shows to this node. wall returns the time of the clock.
func (r *Rotation) runOnce(ctx context.Context, wall func() time.Time) {
	limited, stop := context.WithCancel(ctx)
	defer stop()
	manager, err := r.manager(limited)
	if err != nil {
		r.failed("reading the stored certificate", err)
		_ = sleep.For(ctx, retryAfter) // The loop checks the context.
		return
	}
	manager.Start()
	begun, first, valid := time.Now(), wall(), r.Current() != nil
	for sleep.For(ctx, r.untilLook()) == nil {
		before := valid
		valid = r.Current() != nil
		switch {
		case wasSet(wall().Sub(first), time.Since(begun)):
			r.Log.Info("the clock was set: checking the certificate", "use", r.use())
			return
		case before && !valid && r.Addresses == nil:
			r.Log.Warn("the certificate has expired: requesting another one", "use", r.use())
			return
		}
	}
}

// untilLook returns the time until the next check. A certificate that expires is noticed at once.
func (r *Rotation) untilLook() time.Duration {
	if pair := r.Current(); pair != nil {
		return min(lookEvery, time.Until(pair.Leaf.NotAfter)+time.Millisecond)
	}
	return lookEvery
}

// wasSet reports whether a clock was set, from the time that has passed on it and the time that has really passed.
func wasSet(onClock, really time.Duration) bool { return (onClock - really).Abs() > setBy }
