package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Booted returns when the machine started (kubelet: GetBootTime). It is zero if that is not known.
func Booted(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second).Truncate(time.Second)
}
