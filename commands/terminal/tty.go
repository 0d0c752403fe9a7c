package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// TTY is the user's terminal.
type TTY struct{ fd int }

// Terminal returns the terminal on stdin. It is nil if stdin is not a terminal.
func (e *Env) Terminal() *TTY {
	file, ok := e.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &TTY{fd: int(file.Fd())}
}

// Raw runs a function with the terminal in raw mode, which passes on all keys including control keys. The function
// receives the sizes of the terminal.
func (t *TTY) Raw(ctx context.Context, run func(context.Context, *SizeQueue) error) error {
	before, err := term.MakeRaw(t.fd)
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sizes := t.watchSize(ctx)
	err = run(ctx, sizes)
	return errors.Join(err, term.Restore(t.fd, before))
}

// SizeQueue yields the size of the terminal, first the current one and then each change.
type SizeQueue struct {
	ctx   context.Context //nolint:containedctx // the interface that it implements has none
	sizes chan remotecommand.TerminalSize
}

// Next waits for the next size. It returns nil at the end of the context.
func (q *SizeQueue) Next() *remotecommand.TerminalSize {
	select {
	case <-q.ctx.Done():
		return nil
	case size := <-q.sizes:
		return &size
	}
}

func (t *TTY) watchSize(ctx context.Context) *SizeQueue {
	q := &SizeQueue{ctx: ctx, sizes: make(chan remotecommand.TerminalSize, 1)}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		defer signal.Stop(changed)
		for {
			if width, height, err := term.GetSize(t.fd); err == nil {
				// no screen is that large
				size := remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
				select {
				case q.sizes <- size:
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

// Keys returns a channel with the keys that the user presses on the terminal on stdin. They are not echoed, and control
// keys keep their effect. The caller must call restore. Without a terminal, the channel is nil.
func (e *Env) Keys() (keys <-chan byte, restore func()) {
	t := e.Terminal()
	if t == nil {
		return nil, func() {}
	}
	before, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if err != nil {
		return nil, func() {}
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(t.fd, unix.TCSETS, &now); err != nil {
		return nil, func() {}
	}
	pressed := make(chan byte)
	go readKeys(e.In, pressed)
	return pressed, func() { _ = unix.IoctlSetTermios(t.fd, unix.TCSETS, before) }
}

// readKeys ends with its input, or with the process.
func readKeys(in io.Reader, pressed chan<- byte) {
	key := make([]byte, 1)
	for {
		if _, err := in.Read(key); err != nil {
			return
		}
		pressed <- key[0]
	}
}
