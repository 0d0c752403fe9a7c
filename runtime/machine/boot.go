package machine

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// BootID returns the id of the current start of the kernel, from the file that a kubelet reads; empty if there is none.
// Unlike Booted, it does not depend on the clock.
func BootID(root string) string {
	return line(string(start(filepath.Join(root, "proc/sys/kernel/random/boot_id"))))
}

// Booted returns when the machine started (kubelet: GetBootTime). It is zero if that is not known.
func Booted(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second).Truncate(time.Second)
}
