package state

import (
	"errors"
	"fmt"
	"path/filepath"
)

// cgroupMark is there while the pod's cgroup is being made.
func (p Pod) cgroupMark() string { return filepath.Join(p.Dir(), "cgroup.unfinished") }

// MarkCgroup notes that the pod's cgroup is going to be made: until UnmarkCgroup it may be
// without its limits.
func (p Pod) MarkCgroup() error {
	dir, err := p.Make(p.Dir(), podDirMode)
	if err == nil {
		err = errors.Join(dir.Touch(filepath.Base(p.cgroupMark()), 0o600), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("marking the cgroup as unfinished: %w", err)
	}
	return nil
}

// UnmarkCgroup notes that the pod's cgroup has its limits, or is gone.
func (p Pod) UnmarkCgroup() error {
	if err := firstError(p.check(), removeFile(p.cgroupMark())); err != nil {
		return fmt.Errorf("marking the cgroup as finished: %w", err)
	}
	return nil
}

// CgroupMarked tells that nobody can say whether the pod's cgroup has its limits.
func (p Pod) CgroupMarked() bool {
	marked, err := exists(p.cgroupMark())
	return err == nil && marked
}
