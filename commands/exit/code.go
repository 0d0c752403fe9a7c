package exit

import (
	"context"
	"errors"
	"strconv"

	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/syncpod"
	"github.com/podctl/podctl/runtime/wait"
)

// Exit codes, the same for every command.
const (
	OK = iota
	// Error means that the command failed.
	Error
	// Pending means that `plan --exit-code` found changes.
	Pending
	// NotYet means incomplete, held, blocked or timed out. For a probe it means undecided.
	NotYet
	// ProbeFailed means that a probe failed.
	ProbeFailed
	// Refused means that the manifest is invalid, or needs a feature that podctl lacks.
	Refused
	// PodFailed means that the awaited pod has failed.
	PodFailed
	// Interrupted means that the user ended the command.
	Interrupted = 130
)

// Exit codes of podctl's own failures in commands that pass on the exit code of a process. They are those of a shell
// and of docker.
const (
	// RunFailed means that `run` could not run the pod.
	RunFailed = 125
	// ExecFailed means that a command in a container could not be run.
	ExecFailed = 126
	// NotFound means that the pod, container or command does not exist.
	NotFound = 127
	// BrokenPipe is the code that a shell shows for a process ended by SIGPIPE.
	BrokenPipe = 141
)

// Meanings lists the exit codes with their meanings, one line each.
func Meanings() []string {
	return []string{
		"0 success",
		"1 error",
		"2 plan --exit-code: something would change",
		"3 a state was not reached, an object is missing, or (with --exit-code) a change is held",
		"4 a probe failed",
		"5 manifest refused",
		"6 the awaited pod has failed",
		"130 interrupted",
	}
}

// CodeError ends a command with a code. Without an error it prints nothing.
type CodeError struct {
	Code int
	Err  error
}

// Error returns the text of the error; empty without one.
func (e *CodeError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the error.
func (e *CodeError) Unwrap() error { return e.Err }

// With returns an error that ends a command with a code and without a message.
func With(code int) error {
	if code == OK {
		return nil
	}
	return &CodeError{Code: code}
}

// Code maps an error to the exit code. All commands use it.
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

// ownFailureKey is the annotation with the exit code of podctl's own failures, for commands that pass on the exit code
// of a process.
const ownFailureKey = "podctl.io/own-failure"

// OwnFailure returns the annotations of a command that passes on the exit code of a process. podctl's own failures end
// it with the given code.
func OwnFailure(code int) map[string]string {
	return map[string]string{ownFailureKey: strconv.Itoa(code)}
}

// CommandCode is Code for a command with annotations. It returns the code from OwnFailure for podctl's own failures.
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

// Worst returns the more important code. From high to low: interrupted, refused, error, failed, not yet, pending.
func Worst(a, b int) int {
	rank := map[int]int{
		OK: 0, Pending: 1, NotYet: 2, ProbeFailed: 3, PodFailed: 4, Error: 5, Refused: 6, Interrupted: 7,
	}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
