package model

import "errors"

// ReasonError adds the kubelet's name and the consequences to a failure.
type ReasonError struct {
	Reason Reason
	// Retryable reports whether a container may be started again after its restart delay, and Stopped whether it ran
	// and was stopped again.
	Retryable, Stopped bool
	Err                error
}

// Error returns the text of the failure.
func (e *ReasonError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *ReasonError) Unwrap() error { return e.Err }

// WithReason adds a reason to a failure; nil without one.
func WithReason(reason Reason, err error) error {
	if err == nil {
		return nil
	}
	return &ReasonError{Reason: reason, Err: err}
}

// ReasonOf returns the reason of a failure, or the fallback if it has none.
func ReasonOf(err error, fallback Reason) Reason {
	if e, ok := errors.AsType[*ReasonError](err); ok {
		return e.Reason
	}
	return fallback
}
