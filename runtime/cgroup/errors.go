package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// UnavailableError reports that this machine does not allow podctl to create a cgroup, or has no controller for its
// limits.
type UnavailableError struct {
	Path string
	Err  error
}

// Error names the cgroup and the cause.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cgroup %s cannot be created: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// settingError distinguishes machines that cannot set limits from limits that are invalid.
func settingError(name string, err error) error {
	for _, lacking := range []error{unix.EROFS, fs.ErrPermission, fs.ErrNotExist, unix.ENODEV, unix.EOPNOTSUPP} {
		if errors.Is(err, lacking) {
			return &UnavailableError{Path: name, Err: err}
		}
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("setting the limits of cgroup %s: %w: more memory is in use than the new limit", name, err)
	}
	return fmt.Errorf("setting the limits of cgroup %s: %w", name, err)
}

// InUseError reports that all pods together use more memory than a limit. To set the limit would kill processes.
type InUseError struct{ Used, Limit int64 }

// Error returns the amounts.
func (e *InUseError) Error() string {
	return fmt.Sprintf("all pods together use %d MiB of memory, more than their limit of %d MiB",
		e.Used>>20, e.Limit>>20)
}

// BusyError reports that processes run in a cgroup to remove.
type BusyError struct {
	Path string
	// PIDs lists the processes in order.
	PIDs []int
}

// pidsShown limits the processes that an error names.
const pidsShown = 10

// Error names the processes and includes advice.
func (e *BusyError) Error() string {
	shown, more := e.PIDs, ""
	if len(shown) > pidsShown {
		shown, more = shown[:pidsShown], fmt.Sprintf(" and %d more", len(shown)-pidsShown)
	}
	names := make([]string, 0, len(shown))
	for _, pid := range shown {
		name := fmt.Sprintf("pid %d", pid)
		if program := programOf(pid); program != "" {
			name = fmt.Sprintf("%s (pid %d)", program, pid)
		}
		names = append(names, name)
	}
	return fmt.Sprintf("cgroup %s cannot be removed: processes run in it: %s%s; end them, then delete the pod again",
		e.Path, strings.Join(names, ", "), more)
}
