package commands

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Env is what a command has of the world around it.
type Env struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// OutTTY and ErrTTY tell that the streams are terminals.
	OutTTY bool
	ErrTTY bool
	Now    func() time.Time
	Getenv func(string) string
	// SystemConfig is the configuration file of all users; empty means none.
	SystemConfig string
}

// System is the process's own environment.
func System() *Env {
	in, out, err := os.Stdin, os.Stdout, os.Stderr //nolint:forbidigo // the one place where a command meets the process
	return &Env{
		In:     in,
		Out:    out,
		Err:    err,
		OutTTY: term.IsTerminal(int(out.Fd())),
		ErrTTY: term.IsTerminal(int(err.Fd())),
		Now:    time.Now,
		Getenv: os.Getenv,

		SystemConfig: "/etc/podctl/config.yaml",
	}
}

// readFile reads a file that a flag names; - is standard input.
func (e *Env) readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(e.In)
	}
	return os.ReadFile(path)
}
