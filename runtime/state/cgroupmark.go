package state

import (
	"fmt"
	"os"
	"path/filepath"
)

// cgroupMark is there while the pod's cgroup is being made.
func (p Pod) cgroupMark() string { return filepath.Join(p.Dir(), "cgroup.unfinished") }

// MarkCgroup notes that the pod's cgroup is going to be made: until UnmarkCgroup it may be
// without its limits.
func (p Pod) MarkCgroup() error {
	err := p.MakeDir(p.Dir(), podDirMode)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(p.cgroupMark(), os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("marking the cgroup as unfinished: %w", err)
	}
	return nil
}

// UnmarkCgroup notes that the pod's cgroup has its limits, or is gone.
func (p Pod) UnmarkCgroup() error {
	if err := removeFile(p.cgroupMark()); err != nil {
		return fmt.Errorf("marking the cgroup as finished: %w", err)
	}
	return nil
}

// CgroupMarked tells that nobody can say whether the pod's cgroup has its limits.
func (p Pod) CgroupMarked() bool {
	marked, err := exists(p.cgroupMark())
	return err == nil && marked
}
