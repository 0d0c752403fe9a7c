package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// UnavailableError says that this machine does not let podctl make a cgroup, or
// has no controller for its limits.
type UnavailableError struct {
	Path string
	Err  error
}

// Error names the cgroup and the cause.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cgroup %s cannot be made: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// settingError separates machines that cannot set limits from limits that cannot be
// set.
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

// BusyError says that processes run in a cgroup that was to be removed.
type BusyError struct {
	Path string
	// PIDs are the processes, in order.
	PIDs []int
}

// pidsShown is how many processes an error names.
const pidsShown = 10

// Error names the processes and says what to do.
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
	return fmt.Sprintf("cgroup %s cannot be removed: processes run in it: %s%s; end them, then delete the pod again", e.Path, strings.Join(names, ", "), more)
}
