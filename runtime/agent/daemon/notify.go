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

// notify sends a state to systemd (sd_notify). It does nothing if systemd does not run the agent.
func notify(state string) { _, _ = sd.SdNotify(false, state) }

// notifyReloading notifies systemd of the start and the end of a reload.
func notifyReloading(reload func()) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err == nil {
		notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", sd.SdNotifyReloading, now.Nano()/1000))
	}
	reload()
	notify(sd.SdNotifyReady)
}

// watchdog notifies systemd that the loop of the agent runs, as often as systemd requires (WATCHDOG_USEC).
func watchdog(ctx context.Context, a *agent.Agent) {
	limit, err := sd.SdWatchdogEnabled(false)
	if err != nil || limit <= 0 {
		return
	}
	for sleep.For(ctx, limit/2) == nil {
		requested, cancel := context.WithTimeout(ctx, limit)
		if _, err := a.Status(requested); err == nil {
			notify(sd.SdNotifyWatchdog)
		}
		cancel()
	}
}

// stopping notifies systemd that the agent ends, and how long that may take: a running deletion finishes, and pods may
// have time to stop.
func stopping(ctx context.Context, pods time.Duration) {
	context.AfterFunc(ctx, func() {
		notify(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d", sd.SdNotifyStopping, (time.Minute + pods).Microseconds()))
	})
}
