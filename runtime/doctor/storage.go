package doctor

import (
	"fmt"
	"strings"
	"time"
)

// scarce is the free space in bytes below which nothing works.
const scarce = 64 << 20

func checkDisk(d *Disk) Check {
	found := fmt.Sprintf("%s: %s of %s free on %s", d.Name, size(d.Free), size(d.Size), d.Path)
	low := d.Size > 0 && d.Free*100/d.Size < d.LowPercent
	lowInodes := d.Inodes > 0 && d.InodesFree*100/d.Inodes < 5
	switch {
	case d.Free < scarce:
		return failed(found, "free some space: writes will soon fail")
	case d.Inodes > 0 && d.InodesFree == 0:
		return failed(found+", and no inodes", "remove small files: no file can be created")
	case lowInodes:
		return warning(fmt.Sprintf("%s, and %d of %d inodes", found, d.InodesFree, d.Inodes), "remove small files")
	case low:
		return warning(found, fmt.Sprintf("free some space: a kubelet evicts pods below %d %%", d.LowPercent))
	}
	return ok(found)
}

// size formats a number of bytes.
func size(bytes uint64) string {
	value, unit := float64(bytes), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

func checkClock(f *Facts) Check {
	now := f.Time.UTC().Format(time.RFC3339)
	const advice = "set the clock, for example with timedatectl set-ntp true"
	if behind := f.State.NewestWrite.Sub(f.Time); behind > time.Second {
		return warning(fmt.Sprintf("%s is %s before podctl's last write", now, behind.Round(time.Second)),
			advice+"; until the clock has caught up, containers that ended later than now restart without delay, "+
				"podctl acts on probe failures later than now only once they are confirmed, "+
				"and deadlines of pods are late")
	}
	if f.Time.Year() < 2025 {
		return warning(now+" is before podctl was built",
			advice+"; certificates of registries appear to be not yet valid")
	}
	return ok(now)
}

func checkState(f *Facts) Check {
	s := f.State
	found := s.Path
	if s.Mode != "" {
		found += ", mode " + s.Mode
	}
	switch {
	case s.Problem != "":
		return failed(apart(s.Problem, "run podctl as root, or choose another with --state-dir"))
	case !s.Writable && !s.Exists:
		return failed(s.Path+" does not exist and cannot be created",
			"run podctl as root, or choose another with --state-dir")
	case !s.Writable:
		return failed(found+", cannot be written",
			"run podctl as root, mount it writable, or choose another with --state-dir")
	case !s.Exists:
		return ok(s.Path + " does not exist yet; the first apply creates it")
	case s.Open:
		return warning(found+", other users can read it", "chmod 700 "+s.Path)
	}
	return ok(found)
}

func checkCheckpoints(f *Facts) Check {
	s := f.State
	found := fmt.Sprintf("%d can be read", s.Checkpoints-len(s.Unreadable))
	switch {
	case len(s.Unreadable) > 0:
		return warning(fmt.Sprintf("%s, %d cannot", found, len(s.Unreadable)), strings.Join(s.Unreadable, "; "))
	case len(s.OpenCheckpoints) > 0:
		return warning("other users can read "+strings.Join(s.OpenCheckpoints, ", "),
			"chmod 600 them: they contain values of Secrets")
	}
	return ok(found)
}

// checkMounts finds volumes in memory and subPaths that a kubelet has hidden. In a private mount, a kubelet binds its
// root directory on itself.
func checkMounts(f *Facts) Check {
	s := f.State
	if len(s.Hidden) == 0 {
		return ok("none below " + s.Path + " is hidden")
	}
	found := fmt.Sprintf("%d below %s are hidden by the mount on %s, such as %s",
		len(s.Hidden), s.Path, s.HiddenBy, s.Hidden[0])
	return warning(found, "a container that restarts finds its volumes in memory empty: "+
		"delete and apply the pods, or stop the programs that use "+s.HiddenBy+" and run umount "+s.HiddenBy)
}
