package exit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// UsageError is a command line that podctl does not understand.
type UsageError struct{ text string }

// Error says what is wrong with the command line.
func (e *UsageError) Error() string { return e.text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{text: fmt.Sprintf(format, args...)}
}

// Join is how a command over several pods ends: with the errors of all, each once (a live
// kubelet is the same one for every pod), and with the worst of their codes.
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

// WithUnreadable is how a command ends that works on all pods: with its own outcome, and with
// the checkpoints that could not be read, which no success hides.
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

// SkippedError is an error after which steps were not done.
type SkippedError struct {
	Err   error
	Steps []string
	// Final reports whether another call would end the same way.
	Final bool
}

// Error says what happened and what is left.
func (e *SkippedError) Error() string { return e.Err.Error() + e.Skipped() }

// Skipped says what was not done.
func (e *SkippedError) Skipped() string {
	text := "; not done: " + strings.Join(e.Steps, ", ")
	if e.Final {
		return text
	}
	return text + "; call it again to go on"
}

// Unwrap returns the error.
func (e *SkippedError) Unwrap() error { return e.Err }

// Interruption says in one word what the user did, and what is left of the work.
func Interruption(err error) error {
	if skipped := (*SkippedError)(nil); errors.As(err, &skipped) {
		return errors.New("interrupted" + skipped.Skipped())
	}
	return errors.New("interrupted")
}
