package listwatch

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// Log writes the failures of a list and watch to a log: each cause once, and that the watch works again. Its methods
// are the Report and Works of Settings.
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
	own, other := &l.watch, &l.list
	if what == "list" {
		own, other = other, own
	}
	text := own.News(err)
	if err == nil || apierror.IsLogged(err) {
		return
	}
	l.failed.Store(true)
	if text == "" || cause(text) == cause(other.Last()) {
		return
	}
	message := "cannot " + what + " " + l.What + " in the API server"
	if l.Effect != "" {
		message += "; " + l.Effect
	}
	l.To.Warn(message, "error", text)
}

// cause returns the text of a failure without the difference between a list and a watch that the API server refuses.
func cause(text string) string {
	return strings.Replace(text, "cannot watch resource", "cannot list resource", 1)
}

// Last returns the text of the failure that lasts; empty if there is none.
func (l *Log) Last() string { return cmp.Or(l.list.Last(), l.watch.Last()) }

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
