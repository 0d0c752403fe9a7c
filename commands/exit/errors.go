package exit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// UsageError reports an invalid command line.
type UsageError struct{ text string }

// Error returns the message.
func (e *UsageError) Error() string { return e.text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{text: fmt.Sprintf(format, args...)}
}

// Join combines the errors of a command over several pods. It lists each text once, because the same error can affect
// every pod, for example a live kubelet. The code is the worst of all.
func Join(ctx context.Context, outcomes ...error) error {
	code := OK
	var errs []error
	for _, err := range outcomes {
		code = Worst(code, Code(ctx, err))
		known := func(before error) bool { return errors.Is(before, err) || before.Error() == err.Error() }
		if err != nil && err.Error() != "" && !slices.ContainsFunc(errs, known) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &CodeError{Code: code, Err: err}
	}
	return With(code)
}

// WithUnreadable adds unreadable checkpoints to the outcome of a command over all pods. The command then fails even if
// its outcome is a success.
func WithUnreadable(ctx context.Context, outcome, unreadable error) error {
	if unreadable == nil {
		return outcome
	}
	all := &CodeError{Code: Worst(Code(ctx, outcome), Error), Err: unreadable}
	if outcome != nil && outcome.Error() != "" {
		all.Err = errors.Join(outcome, unreadable)
	}
	return all
}

// SkippedError is an error with the steps that were skipped because of it.
type SkippedError struct {
	Err   error
	Steps []string
	// Final reports whether another call would fail in the same way.
	Final bool
}

// Error returns the message with the skipped steps.
func (e *SkippedError) Error() string { return e.Err.Error() + e.Skipped() }

// Skipped returns the skipped steps as a suffix for the message.
func (e *SkippedError) Skipped() string {
	text := "; not done: " + strings.Join(e.Steps, ", ")
	if e.Final {
		return text
	}
	return text + "; run the command again to continue"
}

// Unwrap returns the error.
func (e *SkippedError) Unwrap() error { return e.Err }

// Interruption shortens the error of an interrupted command to one word and the skipped steps.
func Interruption(err error) error {
	if skipped := (*SkippedError)(nil); errors.As(err, &skipped) {
		return errors.New("interrupted" + skipped.Skipped())
	}
	return errors.New("interrupted")
}
