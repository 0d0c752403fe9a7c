package commands

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
)

// The exit codes, the same for every command.
const (
	exitOK = iota
	// exitError: it could not be done.
	exitError
	// exitPending: `plan --exit-code` has steps.
	exitPending
	// exitNotYet: not complete, held, blocked or timed out; a probe undecided.
	exitNotYet
	// exitProbeFailed: a probe failed.
	exitProbeFailed
	// exitRefused: the manifest is invalid or asks for what podctl cannot do.
	exitRefused
	exitInterrupted = 130
)

// codeError ends a command with a code; without an error it says nothing.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// withCode ends a command with a code and no message of its own.
func withCode(code int) error {
	if code == exitOK {
		return nil
	}
	return &codeError{code: code}
}

// exitCode is the one place where an error becomes a code.
func exitCode(ctx context.Context, err error) int {
	var (
		coded      *codeError
		refused    *load.RefusedError
		blocked    *runtime.BlockedError
		timeout    *runtime.TimeoutError
		superseded *runtime.SupersededError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(context.Cause(ctx), context.Canceled):
		return exitInterrupted
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &refused):
		return exitRefused
	case errors.As(err, &blocked), errors.As(err, &timeout), errors.As(err, &superseded):
		return exitNotYet
	}
	return exitError
}

// ownFailureKey annotates a command whose exit code is a process's with the code of
// podctl's own failures.
const ownFailureKey = "podctl.io/own-failure"

func ownFailure(code int) map[string]string {
	return map[string]string{ownFailureKey: strconv.Itoa(code)}
}

// codeOf is exitCode for a command: where the code is a process's, podctl's own
// failures are kept apart from it.
func codeOf(ctx context.Context, cmd *cobra.Command, err error) int {
	code := exitCode(ctx, err)
	own, known := cmd.Annotations[ownFailureKey]
	if coded := (*codeError)(nil); !known || err == nil || code == exitInterrupted || errors.As(err, &coded) {
		return code
	}
	if n, convErr := strconv.Atoi(own); convErr == nil {
		return n
	}
	return code
}

// worst keeps the code that says most: an error over what is not there yet over
// what is pending.
func worst(a, b int) int {
	rank := map[int]int{
		exitOK: 0, exitPending: 1, exitNotYet: 2, exitProbeFailed: 3, exitError: 4, exitRefused: 5, exitInterrupted: 6,
	}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
