package commands

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// exitUnread is the code of a process that SIGPIPE has ended, as a shell shows it.
const exitUnread = 141

// errUnread ends a command whose output nobody reads any more.
var errUnread = errors.New("nobody reads what it shows any more")

// keepSIGPIPE lets a write to a pipe that nobody reads fail, where else it would end the
// process: for a command that has something to clear up. The function ends that.
func keepSIGPIPE() (stop func()) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, unix.SIGPIPE)
	return func() { signal.Stop(pipes) }
}

// outlet is an output that ends a command by errUnread.
type outlet struct {
	io.Writer
	end context.CancelCauseFunc
}

// endUnread ends a command when nobody reads what it shows any more.
func (g *globals) endUnread(end context.CancelCauseFunc) {
	env := *g.env
	env.Out, env.Err = outlet{env.Out, end}, outlet{env.Err, end}
	g.env = &env
}

// Write writes as long as somebody reads.
func (o outlet) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, unix.EPIPE) {
		o.end(errUnread)
	}
	return n, err
}
