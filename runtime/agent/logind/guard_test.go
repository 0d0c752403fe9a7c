package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

// machine is a fake logind that records events in order.
type machine struct {
	mu      sync.Mutex
	actions []string
	delay   time.Duration
	raises  bool
	signals chan bool
}

func (m *machine) record(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.actions = append(m.actions, fmt.Sprintf(format, args...))
}

func (m *machine) takeActions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.actions)
}

func (m *machine) Close() error {
	m.record("closed")
	return nil
}

func (m *machine) MaxDelay(context.Context) (time.Duration, error) { return m.delay, nil }

func (m *machine) RaiseMaxDelay(_ context.Context, to time.Duration) error {
	m.record("delay %s", to)
	if m.raises {
		m.delay = to
	}
	return nil
}

func (m *machine) Inhibit(context.Context) (io.Closer, error) {
	m.record("lock")
	return held{m}, nil
}

func (m *machine) Shutdowns(context.Context) (<-chan bool, error) { return m.signals, nil }

type held struct{ m *machine }

func (h held) Close() error {
	h.m.record("unlock")
	return nil
}

// guard returns a guard that only records its calls.
func (m *machine) guard() *Guard {
	return &Guard{
		Within: 30 * time.Second, Log: slog.New(slog.DiscardHandler), Pause: time.Millisecond,
		Stop:   func(context.Context) error { m.record("stop"); return nil },
		Resume: func(context.Context) { m.record("resume") },
	}
}

// TestShutdown checks that logind waits long enough, that the pods stop before the lock is released, and that there is
// a new lock after a canceled shutdown.
func TestShutdown(t *testing.T) {
	m := &machine{delay: 5 * time.Second, raises: true, signals: make(chan bool)}
	g := m.guard()
	connections := 0
	g.Connect = func(context.Context) (Manager, error) {
		if connections++; connections > 1 {
			return nil, errNoLogind
		}
		return m, nil
	}
	ended := make(chan struct{})
	go func() {
		g.Run(t.Context())
		close(ended)
	}()
	m.signals <- true
	m.signals <- false
	m.signals <- true
	close(m.signals)
	<-ended
	want := []string{"delay 35s", "lock", "stop", "unlock", "resume", "unlock", "lock", "stop", "unlock", "unlock", "closed"}
	if diff := cmp.Diff(want, m.takeActions()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWithoutLogind checks that the guard ends without logind, and reconnects after a temporary failure.
func TestWithoutLogind(t *testing.T) {
	m := &machine{}
	g := m.guard()
	tries := 0
	g.Connect = func(context.Context) (Manager, error) {
		if tries++; tries < 3 {
			return nil, errors.New("busy")
		}
		return nil, errNoLogind
	}
	g.Run(t.Context())
	if tries != 3 || len(m.takeActions()) > 0 {
		t.Errorf("%d tries, %v", tries, m.takeActions())
	}
}

// TestDelayRemainsTooShort checks that raise returns an error if the delay remains too short.
func TestDelayRemainsTooShort(t *testing.T) {
	m := &machine{delay: time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := raise(ctx, m, time.Minute); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"delay 1m0s"}, m.takeActions()); diff != "" {
		t.Error(diff)
	}
}

// TestSignals checks that only PrepareForShutdown with a boolean is accepted.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		signal     *dbus.Signal
		begins, ok bool
	}{
		{nil, false, false},
		{&dbus.Signal{Name: manager + ".PrepareForSleep", Body: []any{true}}, false, false},
		{&dbus.Signal{Name: manager + ".PrepareForShutdown"}, false, false},
		{&dbus.Signal{Name: manager + ".PrepareForShutdown", Body: []any{"yes"}}, false, false},
		{&dbus.Signal{Name: manager + ".PrepareForShutdown", Body: []any{true}}, true, true},
		{&dbus.Signal{Name: manager + ".PrepareForShutdown", Body: []any{false}}, false, true},
	} {
		if begins, ok := begins(c.signal); begins != c.begins || ok != c.ok {
			t.Errorf("%v: %t, %t", c.signal, begins, ok)
		}
	}
}
