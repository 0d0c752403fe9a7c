package apierror

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RejectedError is the reason why the node does not use an answer of the API server. Messages may show it: it repeats
// no values of objects.
type RejectedError struct{ Reason string }

func (e RejectedError) Error() string { return e.Reason }

// LoggedError is a failure that its source has logged. It affects many tasks, which do not log it again.
type LoggedError struct{ Err error }

// Error returns the text of the failure.
func (e *LoggedError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *LoggedError) Unwrap() error { return e.Err }

// Timeout reports whether the failure is a timeout, as net.Error does.
func (e *LoggedError) Timeout() bool { return isTimeout(e.Err) }

// IsLogged reports whether a failure was logged by its source. The connection logs that the API server refuses the
// credentials of all requests.
func IsLogged(err error) bool {
	return errors.As(err, new(*LoggedError)) || apierrors.IsUnauthorized(err)
}

// Once logs the failures of one task: each once, until it fails in another way or succeeds. The zero value is ready to
// use, also by several goroutines.
type Once struct {
	mu   sync.Mutex
	text string
}

// News records the result of a try. It returns the text of a failure that differs from the one before; otherwise it is
// empty.
func (o *Once) News(err error) string {
	text := Text(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	if text == o.text {
		return ""
	}
	o.text = text
	return text
}

// Last returns the text of the failure of the last try. It is empty after a success.
func (o *Once) Last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text
}

// Warn records the result of a try, and logs a new failure with a message and attributes. It ignores a try that has
// failed with the end of its context, or with a failure that was logged.
func (o *Once) Warn(ctx context.Context, log *slog.Logger, message string, err error, attributes ...any) {
	if ctx.Err() != nil || IsLogged(err) {
		return
	}
	if text := o.News(err); text != "" {
		log.Warn(message, append(attributes, "error", text)...)
	}
}
