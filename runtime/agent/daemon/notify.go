package daemon

import (
	"context"
	"fmt"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/sleep"
)

// notify tells systemd how the agent is (sd_notify). Nothing happens if systemd does not run it.
func notify(state string) { _, _ = sd.SdNotify(false, state) }

// notifyReloading tells systemd that a reload begins, and that it is done.
func notifyReloading(reload func()) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err == nil {
		notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", sd.SdNotifyReloading, now.Nano()/1000))
	}
	reload()
	notify(sd.SdNotifyReady)
}

// watchdog tells systemd that the loop of the agent goes round, as often as it wants to hear it
// (WATCHDOG_USEC).
func watchdog(ctx context.Context, a *agent.Agent) {
	limit, err := sd.SdWatchdogEnabled(false)
	if err != nil || limit <= 0 {
		return
	}
	for sleep.For(ctx, limit/2) == nil {
		asked, cancel := context.WithTimeout(ctx, limit)
		if _, err := a.Status(asked); err == nil {
			notify(sd.SdNotifyWatchdog)
		}
		cancel()
	}
}

// stopping tells systemd that the agent ends, and how long that may take: a deletion that is under
// way comes to its end, and pods may have some time to stop.
func stopping(ctx context.Context, pods time.Duration) {
	context.AfterFunc(ctx, func() {
		notify(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d", sd.SdNotifyStopping, (time.Minute + pods).Microseconds()))
	})
}
