package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"
)

// The names of logind and systemd on the bus (org.freedesktop.login1(5), org.freedesktop.systemd1(5)).
const (
	service = "org.freedesktop.login1"
	object  = dbus.ObjectPath("/org/freedesktop/login1")
	manager = service + ".Manager"

	systemd       = "org.freedesktop.systemd1"
	systemdObject = dbus.ObjectPath("/org/freedesktop/systemd1")
)

// dropIn is a configuration file of logind that lasts until the next boot.
const dropIn = "/run/systemd/logind.conf.d/90-podctl.conf"

// bus is logind on the system bus.
type bus struct{ conn *dbus.Conn }

// Connect connects to logind on the system bus.
func Connect(ctx context.Context) (Manager, error) {
	conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errNoLogind
	case err != nil:
		return nil, fmt.Errorf("the system bus: %w", err)
	}
	b := bus{conn}
	if _, err = b.MaxDelay(ctx); err != nil {
		_ = conn.Close() // The first error is returned.
		if isUnknown(err) {
			return nil, errNoLogind
		}
		return nil, err
	}
	return b, nil
}

// isUnknown reports whether an error means that the service is not on the bus.
func isUnknown(err error) bool {
	dbusErr := dbus.Error{}
	if !errors.As(err, &dbusErr) {
		return false
	}
	return dbusErr.Name == "org.freedesktop.DBus.Error.ServiceUnknown" ||
		dbusErr.Name == "org.freedesktop.DBus.Error.NameHasNoOwner"
}

func (b bus) Close() error { return b.conn.Close() }

func (b bus) MaxDelay(context.Context) (time.Duration, error) {
	value, err := b.conn.Object(service, object).GetProperty(manager + ".InhibitDelayMaxUSec")
	if err != nil {
		return 0, fmt.Errorf("reading InhibitDelayMaxUSec of systemd-logind: %w", err)
	}
	micros, ok := value.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("InhibitDelayMaxUSec of systemd-logind is %s, not a number", value)
	}
	return time.Duration(micros) * time.Microsecond, nil
}

func (b bus) RaiseMaxDelay(ctx context.Context, to time.Duration) error {
	if err := os.MkdirAll(filepath.Dir(dropIn), 0o755); err != nil { // as logind's own
		return err
	}
	text := fmt.Sprintf("# Written by podctl agent: pods have this long to stop before a shutdown.\n"+
		"[Login]\nInhibitDelayMaxSec=%.0f\n", to.Seconds())
	if err := os.WriteFile(dropIn, []byte(text), 0o644); err != nil { // as logind's own
		return err
	}
	call := b.conn.Object(systemd, systemdObject).
		CallWithContext(ctx, systemd+".Manager.KillUnit", 0, "systemd-logind.service", "all", int32(1))
	if call.Err != nil {
		return fmt.Errorf("reloading the configuration of systemd-logind: %w", call.Err)
	}
	return nil
}

func (b bus) Inhibit(ctx context.Context) (io.Closer, error) {
	var fd dbus.UnixFD
	call := b.conn.Object(service, object).CallWithContext(ctx, manager+".Inhibit", 0,
		"shutdown", "podctl agent", "Pods stop before the machine does", "delay")
	err := call.Store(&fd)
	if err != nil {
		return nil, fmt.Errorf("requesting an inhibitor lock from systemd-logind: %w", err)
	}
	return &lock{File: os.NewFile(uintptr(fd), "inhibitor lock")}, nil
}

// lock is an inhibitor lock. It may be closed more than once.
type lock struct{ *os.File }

func (l *lock) Close() error {
	if err := l.File.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (b bus) Shutdowns(ctx context.Context) (<-chan bool, error) {
	err := b.conn.AddMatchSignalContext(ctx,
		dbus.WithMatchInterface(manager),
		dbus.WithMatchMember("PrepareForShutdown"),
		dbus.WithMatchObjectPath(object))
	if err != nil {
		return nil, fmt.Errorf("subscribing to signals of systemd-logind: %w", err)
	}
	signals, shutdowns := make(chan *dbus.Signal, 8), make(chan bool, 8)
	b.conn.Signal(signals)
	go func() {
		defer close(shutdowns)
		for s := range signals {
			if begin, ok := begins(s); ok {
				shutdowns <- begin
			}
		}
	}()
	return shutdowns, nil
}

// begins parses a signal. It returns whether a shutdown begins or was canceled.
func begins(s *dbus.Signal) (begins, ok bool) {
	if s == nil || s.Name != manager+".PrepareForShutdown" || len(s.Body) != 1 {
		return false, false
	}
	begins, ok = s.Body[0].(bool)
	return begins, ok
}
