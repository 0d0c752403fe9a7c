package listwatch

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// Log writes the failures of a list and watch to a log: each once, and that the watch works again. Its methods are the
// Report and Works of Settings.
type Log struct {
	To *slog.Logger
	// What are the objects, such as "the Services". Effect is what a failure means; it may be empty.
	What, Effect string

	list, watch apierror.Once
	// failed is set from the first failure until the watch works again.
	failed atomic.Bool
}

// Report logs the failure of a list or of a watch.
func (l *Log) Report(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	failures := &l.watch
	if what == "list" {
		failures = &l.list
	}
	if err != nil {
		l.failed.Store(true)
	}
	message := "cannot " + what + " " + l.What + " in the API server"
	if l.Effect != "" {
		message += "; " + l.Effect
	}
	failures.Warn(ctx, l.To, message, err)
}

// Works logs that the watch works again after a failure.
func (l *Log) Works(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	l.list.News(nil)
	l.watch.News(nil)
	if l.failed.Swap(false) {
		l.To.Info("the watch of " + l.What + " in the API server works again")
	}
}
