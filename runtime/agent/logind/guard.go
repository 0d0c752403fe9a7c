package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/podctl/podctl/runtime/sleep"
)

// Manager is the interface of systemd-logind.
type Manager interface {
	io.Closer
	// MaxDelay returns how long a lock can delay a shutdown.
	MaxDelay(ctx context.Context) (time.Duration, error)
	// RaiseMaxDelay raises MaxDelay to at least that long, until the machine boots again.
	RaiseMaxDelay(ctx context.Context, to time.Duration) error
	// Inhibit takes a lock. Closing the lock lets a shutdown continue.
	Inhibit(ctx context.Context) (io.Closer, error)
	// Shutdowns receives true when a shutdown begins, and false when it is canceled. The channel is closed when the
	// connection ends.
	Shutdowns(ctx context.Context) (<-chan bool, error)
}

// errNoLogind reports that the machine has no systemd-logind.
var errNoLogind = errors.New("systemd-logind is not running")

// Guard stops pods before the machine shuts down.
type Guard struct {
	// Within is how long the pods may take to stop.
	Within time.Duration
	// Stop stops the pods, and returns when they have stopped or their time limit has passed. Resume starts them again.
	Stop   func(ctx context.Context) error
	Resume func(ctx context.Context)
	// Connect connects to logind. errNoLogind ends the guard.
	Connect func(ctx context.Context) (Manager, error)
	Log     *slog.Logger
	// Pause is the time between two attempts to connect to logind.
	Pause time.Duration
}

// slack is how much longer logind waits than the pods need: the agent must receive the signal, and release its lock.
const slack = 5 * time.Second

// Run guards the pods until the context ends. Without logind it returns at once. It reconnects after a broken
// connection.
func (g *Guard) Run(ctx context.Context) {
	logged := ""
	for ctx.Err() == nil {
		err := g.guard(ctx)
		if errors.Is(err, errNoLogind) {
			return
		}
		if err != nil && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			g.Log.Warn("a shutdown of the machine cannot wait for pods", "error", logged)
		}
		_ = sleep.For(ctx, g.Pause)
	}
}

// guard guards the pods while one connection lasts.
func (g *Guard) guard(ctx context.Context) (err error) {
	m, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err = raise(ctx, m, g.Within+slack); err != nil {
		return err
	}
	shutdowns, err := m.Shutdowns(ctx)
	if err != nil {
		return err
	}
	lock, err := m.Inhibit(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // Closing it twice does nothing.
	g.Log.Info("a shutdown of the machine waits for pods", "within", g.Within.String())
	for {
		select {
		case <-ctx.Done():
			return nil
		case begins, open := <-shutdowns:
			if !open {
				return errors.New("the connection to systemd-logind has ended")
			}
			if begins {
				err = g.shutdown(ctx, lock)
			} else {
				lock, err = g.resume(ctx, m, lock)
			}
			if err != nil {
				return err
			}
		}
	}
}

// shutdown stops the pods, and then lets the shutdown continue.
func (g *Guard) shutdown(ctx context.Context, lock io.Closer) error {
	if err := g.Stop(ctx); err != nil {
		g.Log.Error("stopping pods", "error", err.Error())
	}
	return lock.Close()
}

// resume starts the pods again, and takes a new lock for the next shutdown.
func (g *Guard) resume(ctx context.Context, m Manager, lock io.Closer) (io.Closer, error) {
	g.Resume(ctx)
	_ = lock.Close() // It is usually closed already.
	return m.Inhibit(ctx)
}

// raise makes sure that logind waits as long as the pods may take.
func raise(ctx context.Context, m Manager, need time.Duration) error {
	has, err := m.MaxDelay(ctx)
	if err != nil || has >= need {
		return err
	}
	if err = m.RaiseMaxDelay(ctx, need); err != nil {
		return err
	}
	// logind reads its configuration asynchronously.
	for range 50 {
		if has, err = m.MaxDelay(ctx); err != nil || has >= need {
			return err
		}
		if err = sleep.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf(
		"systemd-logind waits for %s at most, and pods may take %s: set InhibitDelayMaxSec in logind.conf", has, need)
}
