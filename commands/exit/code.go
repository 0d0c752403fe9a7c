package exit

import (
	"context"
	"errors"
	"strconv"

	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/syncpod"
	"github.com/podctl/podctl/runtime/wait"
)

// The exit codes, the same for every command.
const (
	OK = iota
	// Error means that it could not be done.
	Error
	// Pending means that `plan --exit-code` has steps.
	Pending
	// NotYet means not complete, held, blocked or timed out; a probe undecided.
	NotYet
	// ProbeFailed means that a probe failed.
	ProbeFailed
	// Refused means that the manifest is invalid or asks for what podctl cannot do.
	Refused
	// PodFailed means that a pod, whose end was waited for, has failed.
	PodFailed
	// Interrupted means that the user ended the command.
	Interrupted = 130
)

// Where the exit code is a process's, podctl's own failures have these codes, as those of a
// shell and of docker.
const (
	// RunFailed means that `run` could not run the pod.
	RunFailed = 125
	// ExecFailed means that a command in a container could not be run.
	ExecFailed = 126
	// NotFound means that there is no such pod, container or command.
	NotFound = 127
	// BrokenPipe is the code of a process that SIGPIPE has ended, as a shell shows it.
	BrokenPipe = 141
)

// Meanings are the exit codes and what they mean, one line each.
func Meanings() []string {
	return []string{
		"0 success", "1 error", "2 plan --exit-code: something would change", "3 not reached yet, or held", "4 a probe failed",
		"5 manifest refused", "6 the awaited pod has failed", "130 interrupted",
	}
}

// CodeError ends a command with a code; without an error it prints nothing.
type CodeError struct {
	Code int
	Err  error
}

// Error is the text of the error, or nothing.
func (e *CodeError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the error.
func (e *CodeError) Unwrap() error { return e.Err }

// With ends a command with a code and no message of its own.
func With(code int) error {
	if code == OK {
		return nil
	}
	return &CodeError{Code: code}
}

// Code is the one place where an error becomes an exit code.
func Code(ctx context.Context, err error) int {
	var (
		coded      *CodeError
		refused    *load.RefusedError
		blocked    *wait.BlockedError
		timeout    *wait.TimeoutError
		failed     *wait.FailedError
		superseded *syncpod.SupersededError
	)
	switch {
	case err == nil:
		return OK
	case errors.Is(context.Cause(ctx), context.Canceled):
		return Interrupted
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &refused):
		return Refused
	case errors.As(err, &failed):
		return PodFailed
	case errors.As(err, &blocked), errors.As(err, &timeout), errors.As(err, &superseded):
		return NotYet
	}
	return Error
}

// ownFailureKey annotates a command whose exit code is a process's with the code of
// podctl's own failures.
const ownFailureKey = "podctl.io/own-failure"

// OwnFailure annotates a command whose exit code is a process's: podctl's own failures end it
// with this code.
func OwnFailure(code int) map[string]string {
	return map[string]string{ownFailureKey: strconv.Itoa(code)}
}

// CommandCode is Code for a command with annotations: where the code is a process's, podctl's
// own failures are kept apart from it.
func CommandCode(ctx context.Context, annotations map[string]string, err error) int {
	code := Code(ctx, err)
	own, known := annotations[ownFailureKey]
	if coded := (*CodeError)(nil); !known || err == nil || code == Interrupted || errors.As(err, &coded) {
		return code
	}
	if n, convErr := strconv.Atoi(own); convErr == nil {
		return n
	}
	return code
}

// Worst keeps the code that says most: an error over what is not there yet over
// what has failed, and that over what is pending.
func Worst(a, b int) int {
	rank := map[int]int{
		OK: 0, Pending: 1, NotYet: 2, ProbeFailed: 3, PodFailed: 4, Error: 5, Refused: 6, Interrupted: 7,
	}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
