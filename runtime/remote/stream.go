package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	streamhttp "k8s.io/streaming/pkg/httpstream"
)

// Streams connects a process in a container. A nil stream is not connected. With a terminal, the process's errors are
// part of its output.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool
	// Resize returns the terminal's sizes; nil if the size never changes.
	Resize remotecommand.TerminalSizeQueue
}

// ExitError is the exit code of a process that podctl ran for the user.
type ExitError struct{ Code int }

// Error shows the code.
func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Carry opens a connection to the runtime's address and carries the streams. It uses WebSocket, or SPDY if the runtime
// does not support the protocol that can end an input. An address is valid for one attempt, so the second attempt calls
// open again. An exit code other than zero is an *ExitError. A write error ends Carry with an *OutputError, regardless
// of the process.
func Carry(ctx context.Context, s *Streams, open func() (string, error)) error {
	return Guard(ctx, s, func(ctx context.Context, s *Streams) error { return carry(ctx, s, open) })
}

func carry(ctx context.Context, s *Streams, open func() (string, error)) error {
	err := carryBy(ctx, s, open, func(u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(&restclient.Config{}, "GET", u.String())
	})
	if streamhttp.IsUpgradeFailure(err) {
		err = carryBy(ctx, s, open, SPDY)
	}
	if exit := utilexec.ExitError(nil); errors.As(err, &exit) && exit.Exited() {
		return &ExitError{Code: exit.ExitStatus()}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// ErrLost reports a stream that ended without a status from the runtime.
var ErrLost = errors.New("the connection was lost: the runtime was stopped, or closed it")

func carryBy(ctx context.Context, s *Streams, open func() (string, error),
	executor func(*url.URL) (remotecommand.Executor, error),
) error {
	address, err := open()
	if err != nil {
		return err
	}
	u, err := parse(address)
	if err != nil {
		return err
	}
	x, err := executor(u)
	if err != nil {
		return err
	}
	opts := remotecommand.StreamOptions{
		Stdin:             s.In,
		Stdout:            s.Out,
		Stderr:            s.Err,
		Tty:               s.Terminal,
		TerminalSizeQueue: s.Resize,
	}
	if s.Terminal {
		opts.Stderr = nil
	}
	return x.StreamWithContext(ctx, opts)
}

// parse parses the address of a stream. An address without a host, which old runtimes return, is on this machine.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the runtime gave an address for the stream that cannot be read: %w", err)
	}
	if u.Host == "" {
		u.Host = "localhost"
	}
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	return u, nil
}
