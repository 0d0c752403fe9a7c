package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// terminal is the user's terminal.
type terminal struct{ fd int }

// terminal is the one the standard input comes from; nil when that is none.
func (e *Env) terminal() *terminal {
	file, ok := e.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &terminal{fd: int(file.Fd())}
}

// raw runs a function while the terminal passes every key on, control keys
// included, and tells it the terminal's sizes.
func (t *terminal) raw(ctx context.Context, run func(context.Context, *sizeQueue) error) error {
	before, err := term.MakeRaw(t.fd)
	if err != nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sizes := t.watchSize(ctx)
	err = run(ctx, sizes)
	return errors.Join(err, term.Restore(t.fd, before))
}

// sizeQueue yields the terminal's size, now and whenever it changes.
type sizeQueue struct {
	ctx   context.Context //nolint:containedctx // the interface it serves has none
	sizes chan remotecommand.TerminalSize
}

// Next waits for the next size; nil ends the queue.
func (q *sizeQueue) Next() *remotecommand.TerminalSize {
	select {
	case <-q.ctx.Done():
		return nil
	case size := <-q.sizes:
		return &size
	}
}

func (t *terminal) watchSize(ctx context.Context) *sizeQueue {
	q := &sizeQueue{ctx: ctx, sizes: make(chan remotecommand.TerminalSize, 1)}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		defer signal.Stop(changed)
		for {
			if width, height, err := term.GetSize(t.fd); err == nil {
				select {
				case q.sizes <- remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}: //nolint:gosec // no screen is that large
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return q
}
